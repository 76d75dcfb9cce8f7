// swift-tools-version: 6.3
import PackageDescription

// Faults on demand, in debug builds only: see docs/testing.md.
let failpoints: [SwiftSetting] = [.define("LARDER_FAILPOINTS", .when(configuration: .debug))]

let package = Package(
    name: "larder",
    platforms: [.macOS(.v15), .iOS(.v18)],
    products: [
        .library(name: "HTTPCaching", targets: ["HTTPCaching"]),
        .library(name: "Larder", targets: ["Larder"]),
        .library(name: "LarderAsyncHTTPClient", targets: ["LarderAsyncHTTPClient"]),
        .library(name: "LarderGateway", targets: ["LarderGateway"]),
        .library(name: "LarderHTTP", targets: ["LarderHTTP"]),
        .library(name: "LarderHummingbird", targets: ["LarderHummingbird"]),
        .library(name: "LarderMetrics", targets: ["LarderMetrics"]),
        .library(name: "LarderNIOTransport", targets: ["LarderNIOTransport"]),
        .library(name: "LarderObjects", targets: ["LarderObjects"]),
        .library(name: "LarderObjectsGRPC", targets: ["LarderObjectsGRPC"]),
        .library(name: "LarderPackages", targets: ["LarderPackages"]),
        .library(name: "LarderURLSession", targets: ["LarderURLSession"]),
        .library(name: "LarderValues", targets: ["LarderValues"]),
        .library(name: "TestOrigin", targets: ["TestOrigin"]),
        // For C and other languages: liblarder. tools/install-c builds and installs it.
        .library(name: "larder", type: .dynamic, targets: ["LarderC"]),
        .executable(name: "cachectl", targets: ["cachectl"]),
        // For the package in Fuzz/, without any promise to others.
        .library(
            name: "_FuzzedModules",
            targets: ["BuildMessages", "CachectlCore", "CLarderInterface", "HTTPWire", "LarderC"]),
    ],
    traits: [
        .default(
            enabledTraits: [
                "cachectl", "LarderAsyncHTTPClient", "LarderGateway", "LarderHTTP", "LarderHummingbird",
                "LarderMetrics", "LarderNIOTransport", "LarderObjects", "LarderObjectsGRPC", "LarderPackages",
                "LarderURLSession", "LarderValues", "TestOrigin",
            ]
        ),
        .trait(name: "HTTPCaching", description: "The rules of HTTP caching."),
        .trait(name: "LarderHTTP", description: "The HTTP cache.", enabledTraits: ["HTTPCaching"]),
        .trait(
            name: "LarderNIOTransport", description: "Its transport on SwiftNIO.", enabledTraits: ["LarderHTTP"]
        ),
        .trait(
            name: "LarderAsyncHTTPClient", description: "The HTTP cache with AsyncHTTPClient.",
            enabledTraits: ["LarderHTTP"]
        ),
        .trait(name: "LarderGateway", description: "The gateway.", enabledTraits: ["LarderHTTP"]),
        .trait(
            name: "LarderHummingbird", description: "The HTTP cache in Hummingbird servers.",
            enabledTraits: ["LarderHTTP"]
        ),
        .trait(name: "LarderMetrics", description: "Reports a store to swift-metrics."),
        .trait(name: "LarderObjects", description: "The object server.", enabledTraits: ["LarderGateway"]),
        .trait(
            name: "LarderObjectsGRPC", description: "The Remote Execution API's cache over gRPC.",
            enabledTraits: ["LarderObjects"]
        ),
        .trait(name: "LarderPackages", description: "Packages of responses.", enabledTraits: ["LarderHTTP"]),
        .trait(name: "LarderURLSession", description: "Caching for URLSession.", enabledTraits: ["LarderHTTP"]),
        .trait(name: "LarderValues", description: "Entries as values of a type."),
        .trait(name: "TestOrigin", description: "A scripted origin, for tests."),
        .trait(
            name: "cachectl", description: "The command line; its object server needs LarderObjectsGRPC, too.",
            enabledTraits: ["LarderGateway", "LarderNIOTransport", "LarderPackages"]
        ),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
        .package(url: "https://github.com/apple/swift-http-structured-headers", from: "1.7.0"),
        .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/apple/swift-nio-extras", from: "1.35.2"),
        .package(url: "https://github.com/apple/swift-nio-http2", from: "1.46.0"),
        .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.6"),
        .package(url: "https://github.com/apple/swift-protobuf", from: "1.39.0"),
        .package(url: "https://github.com/apple/swift-system", from: "1.8.1"),
        .package(url: "https://github.com/grpc/grpc-swift-2", from: "2.4.3"),
        .package(url: "https://github.com/grpc/grpc-swift-nio-transport", from: "2.9.2"),
        .package(url: "https://github.com/grpc/grpc-swift-protobuf", from: "2.4.1"),
        .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1", traits: []),
        .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    ],
    targets: [
        .systemLibrary(
            name: "CLMDB",
            pkgConfig: "lmdb",
            providers: [.apt(["liblmdb-dev"]), .brew(["lmdb"])]
        ),
        .systemLibrary(
            name: "CZlib",
            pkgConfig: "zlib",
            providers: [.apt(["zlib1g-dev"]), .brew(["zlib"])]
        ),
        .systemLibrary(
            name: "CZip",
            pkgConfig: "libzip",
            providers: [.apt(["libzip-dev"]), .brew(["libzip"])]
        ),
        .target(name: "CLarder"),
        // `Mutex` and `Atomic`, and what stands in for `Mutex`: in builds with a sanitizer, and in the engine on Linux.
        .target(name: "Locks", dependencies: ["CLarder"]),
        .target(name: "Failpoints", dependencies: ["Locks"], swiftSettings: failpoints),
        .target(name: "LMDB", dependencies: ["CLMDB", "Failpoints"], swiftSettings: failpoints),
        .target(
            name: "Larder",
            dependencies: [
                "CLarder", "CZlib", "Failpoints", "LMDB", "Locks", .crypto, .cryptoExtras, .logging, .systemPackage,
            ],
            swiftSettings: failpoints
        ),
        .target(name: "CLarderInterface"),
        .target(name: "LarderC", dependencies: ["CLarderInterface", "Larder", "Locks", .systemPackage]),
        .target(name: "LarderMetrics", dependencies: ["Larder", "Locks", .metrics]),
        .target(name: "LarderValues", dependencies: ["Larder"]),
        .target(name: "HTTPCaching", dependencies: [.crypto, .httpTypes, .structuredFields]),
        .target(name: "HTTPWire", dependencies: [.httpTypes]),
        .target(
            name: "LarderHTTP",
            dependencies: ["HTTPCaching", "HTTPWire", "Larder", "Locks", .httpTypes, .logging, .systemPackage]
        ),
        .target(name: "LarderSockets", dependencies: [.nioCore]),
        .target(
            name: "LarderNIOTransport",
            dependencies: [
                "HTTPWire", "Larder", "LarderHTTP", "LarderSockets", "Locks", .httpTypes, .nioCore, .nioHPACK,
                .nioHTTP2, .nioPosix, .nioSSL, .nioTLS,
            ]
        ),
        .target(
            name: "LarderAsyncHTTPClient",
            dependencies: [
                "CZlib", "Larder", "LarderHTTP", "Locks", .asyncHTTPClient, .httpTypes, .logging, .nioCore, .nioHTTP1,
                .nioHTTPCompression, .nioPosix,
            ]
        ),
        .target(
            name: "LarderURLSession", dependencies: ["CLarder", "Larder", "LarderHTTP", "Locks", .httpTypes]
        ),
        .target(
            name: "LarderPackages",
            dependencies: [
                "CZip", "HTTPCaching", "Larder", "LarderHTTP", "Locks", .crypto, .httpTypes, .logging, .systemPackage,
            ]
        ),
        .target(
            name: "LarderServer",
            dependencies: [
                "HTTPWire", "Larder", "LarderHTTP", "LarderSockets", "Locks", .httpTypes, .logging, .nioCore,
                .nioHPACK, .nioPosix, .nioSSL, .nioTLS, .systemPackage,
            ]
        ),
        .target(
            name: "LarderGateway",
            dependencies: [
                "HTTPCaching", "HTTPWire", "Larder", "LarderHTTP", "LarderServer", .httpTypes, .logging, .nioCore,
                .systemPackage,
            ]
        ),
        // Generated from protos/ by tools/messages.
        .target(name: "BuildMessages", dependencies: [.protobuf], exclude: ["protos"]),
        .target(
            name: "LarderObjects",
            dependencies: [
                "BuildMessages", "HTTPCaching", "Larder", "LarderHTTP", "LarderServer", "Locks", .httpTypes, .logging,
                .nioCore, .protobuf,
            ]
        ),
        .target(
            name: "LarderObjectsGRPC",
            dependencies: [
                "BuildMessages", "Larder", "LarderObjects", "LarderServer", "Locks", .grpcCore, .grpcNIOTransport,
                .grpcProtobuf, .logging, .nioCore, .nioHPACK, .nioHTTP2, .protobuf,
            ]
        ),
        .target(
            name: "LarderHummingbird",
            dependencies: [
                "HTTPCaching", "Larder", "LarderHTTP", "Locks", .httpTypes, .hummingbird, .logging, .nioCore,
                .serviceLifecycle,
            ]
        ),
        .target(name: "TestOrigin", dependencies: ["Locks", .httpTypes, .nioCore, .nioPosix, .nioSSL]),
        .target(
            name: "CachectlCore",
            dependencies: ["Larder", "LarderHTTP", "Locks", .argumentParser, .httpTypes, .systemPackage]
        ),
        .target(
            name: "CachectlDemo",
            dependencies: [
                "CachectlCore", "HTTPCaching", "Larder", "LarderGateway", "LarderHTTP", "LarderNIOTransport", "Locks",
                .argumentParser, .httpTypes, .nioCore, .nioHTTP1, .nioPosix, .systemPackage,
            ]
        ),
        .executableTarget(
            name: "cachectl",
            dependencies: [
                "CLarder", "CachectlCore", "CachectlDemo", "HTTPCaching", "Larder", "LarderGateway", "LarderHTTP",
                "LarderNIOTransport", "LarderPackages", "LarderServer", "Locks", .argumentParser, .httpTypes, .logging,
                .nioCore, .nioPosix, .systemPackage,
                // gRPC is a third of a release build, and only `objects` needs it: see tools/run.
                .target(name: "LarderObjects", condition: .when(traits: ["LarderObjectsGRPC"])),
                .target(name: "LarderObjectsGRPC", condition: .when(traits: ["LarderObjectsGRPC"])),
            ]
        ),
        .executableTarget(
            name: "LarderTestWorker",
            dependencies: ["CEffort", "Larder", "LarderValues", "SeededData"],
            path: "Tests/LarderTestWorker"
        ),
        .executableTarget(
            name: "LarderPersistWorker",
            dependencies: ["Larder", "LarderHummingbird", .hummingbird],
            path: "Tests/LarderPersistWorker"
        ),
        .target(name: "CEffort", path: "Tests/CEffort"),
        .executableTarget(
            name: "gateway-torture",
            dependencies: ["HTTPTestSupport", "TestOrigin", .nioCore, .nioPosix, .nioSSL],
            path: "Tests/GatewayTorture"
        ),
        .executableTarget(name: "LarderEffort", dependencies: ["CEffort", "Larder"], path: "Tests/LarderEffort"),
        // No test depends on these two, or their malloc would be that of the tests; every build of the tests makes
        // them.
        .target(name: "CGatewayEffort", path: "Tests/CGatewayEffort"),
        .executableTarget(
            name: "LarderGatewayEffort",
            dependencies: [
                "CGatewayEffort", "HTTPTestSupport", "Larder", "LarderGateway", "LarderHTTP", "LarderNIOTransport",
                "TestOrigin", .nioCore, .nioPosix, .nioSSL,
            ],
            path: "Tests/LarderGatewayEffort"
        ),
        .executableTarget(
            name: "torture",
            dependencies: ["Failpoints", "Larder", "Locks", "SeededData", .systemPackage],
            path: "Tests/Torture",
            swiftSettings: failpoints
        ),
        .target(name: "SeededData", path: "Tests/SeededData"),
        .target(
            name: "TestSupport",
            dependencies: ["Larder", "Locks", "SeededData", .systemPackage],
            path: "Tests/TestSupport"
        ),
        .target(name: "HTTPScenarios", dependencies: ["HTTPCaching", .httpTypes], path: "Tests/HTTPScenarios"),
        .testTarget(
            name: "HTTPCachingTests", dependencies: ["HTTPCaching", "HTTPScenarios", "TestSupport", .httpTypes]
        ),
        .testTarget(
            name: "LarderHTTPTests",
            dependencies: ["HTTPScenarios", "HTTPTestSupport", "LarderHTTP", "Locks", "TestSupport", .httpTypes]
        ),
        .testTarget(name: "HTTPWireTests", dependencies: ["HTTPWire", "TestSupport", .httpTypes]),
        .testTarget(name: "LMDBTests", dependencies: ["CLarder", "LMDB", "TestSupport"]),
        .testTarget(
            name: "LarderTests",
            dependencies: [
                "CLarder", "Failpoints", "Larder", "LarderEffort", "LarderTestWorker", "Locks", "TestSupport",
            ],
            exclude: ["Effort", "Golden"],
            swiftSettings: failpoints
        ),
        .testTarget(
            name: "LarderCTests",
            dependencies: ["CLarderInterface", "Larder", "LarderC", "SeededData", "TestSupport", .systemPackage]
        ),
        .testTarget(
            name: "LarderMetricsTests",
            dependencies: ["Larder", "LarderMetrics", "TestSupport", .metrics, .metricsTestKit]
        ),
        .testTarget(
            name: "LarderValuesTests", dependencies: ["Larder", "LarderValues", "Locks", "TestSupport"]
        ),
        .target(
            name: "HTTPTestSupport",
            dependencies: ["LarderHTTP", "Locks", .httpTypes, .nioCore, .nioPosix],
            path: "Tests/HTTPTestSupport"
        ),
        .testTarget(
            name: "TestOriginTests",
            dependencies: [
                "HTTPTestSupport", "LarderHTTP", "LarderNIOTransport", "TestOrigin", .httpTypes, .nioCore, .nioPosix,
                .nioSSL,
            ]
        ),
        .testTarget(
            name: "LarderAsyncHTTPClientTests",
            dependencies: [
                "CZlib", "HTTPCaching", "Larder", "LarderAsyncHTTPClient", "LarderHTTP", "TestOrigin", "TestSupport",
                .asyncHTTPClient, .httpTypes, .nioCore, .nioHTTP1, .nioHTTPCompression, .nioSSL, .systemPackage,
            ]
        ),
        .testTarget(
            name: "LarderHummingbirdTests",
            dependencies: [
                "HTTPTestSupport", "Larder", "LarderAsyncHTTPClient", "LarderHTTP", "LarderHummingbird",
                "LarderPersistWorker", "Locks", "TestOrigin", "TestSupport", .asyncHTTPClient, .httpTypes, .hummingbird,
                .hummingbirdHTTP2, .hummingbirdTesting, .logging, .nioCore, .nioSSL, .serviceLifecycle, .systemPackage,
            ]
        ),
        .testTarget(
            name: "LarderPackagesTests",
            dependencies: [
                "HTTPCaching", "HTTPTestSupport", "Larder", "LarderHTTP", "LarderPackages", "SeededData", "TestSupport",
                .crypto, .httpTypes, .systemPackage,
            ],
            exclude: ["Golden"]
        ),
        .testTarget(
            name: "LarderURLSessionTests",
            dependencies: [
                "Larder", "LarderHTTP", "LarderURLSession", "SeededData", "TestOrigin", "TestSupport", .httpTypes,
            ]
        ),
        .testTarget(
            name: "LarderGatewayTests",
            dependencies: [
                "CZlib", "HTTPCaching", "HTTPScenarios", "HTTPTestSupport", "Larder", "LarderGateway", "LarderHTTP",
                "LarderNIOTransport", "LarderServer", "Locks", "TestOrigin", "TestSupport", .httpTypes, .nioCore,
                .nioEmbedded, .nioHTTP2, .nioHTTPTypes, .nioHTTPTypesHTTP2, .nioPosix, .nioSSL, .systemPackage,
            ],
            exclude: ["Effort"]
        ),
        .testTarget(
            name: "LarderObjectsTests",
            dependencies: [
                "BuildMessages", "HTTPTestSupport", "Larder", "LarderNIOTransport", "LarderObjects", "SeededData",
                "TestSupport", .httpTypes, .nioCore, .protobuf, .systemPackage,
            ]
        ),
        .testTarget(
            name: "LarderObjectsGRPCTests",
            dependencies: [
                "BuildMessages", "Larder", "LarderObjects", "LarderObjectsGRPC", "SeededData", "TestOrigin",
                "TestSupport", .grpcCore, .grpcNIOTransport, .grpcProtobuf, .nioCore, .nioHPACK,
                .nioHTTP2, .nioPosix,
                .protobuf,
            ]
        ),
        .testTarget(
            name: "DocumentationTests",
            dependencies: [
                "HTTPCaching", "Larder", "LarderAsyncHTTPClient", "LarderGateway", "LarderHTTP", "LarderHummingbird",
                "LarderNIOTransport", "LarderObjects", "LarderObjectsGRPC", "LarderPackages", "LarderURLSession",
                "LarderValues", "TestOrigin", .asyncHTTPClient, .httpTypes, .hummingbird,
            ]
        ),
        .testTarget(
            name: "LarderNIOTransportTests",
            dependencies: [
                "HTTPWire", "LarderHTTP", "LarderNIOTransport", "Locks", "TestOrigin", "TestSupport", .httpTypes,
                .nioCore, .nioEmbedded, .nioHPACK, .nioHTTP2, .nioPosix, .nioSSL,
            ]
        ),
        .testTarget(
            name: "CachectlTests",
            dependencies: [
                "cachectl", "CachectlCore", "CachectlDemo", "HTTPTestSupport", "Larder", "LarderHTTP", "TestOrigin",
                "TestSupport", .httpTypes,
            ]),
    ],
    swiftLanguageModes: [.v6]
)

// With LARDER_TEST_TARGETS (names, separated by commas) only these test targets are there, so that tools/test can build
// the tests of one part: all test targets of a package are one program.
if let names = Context.environment["LARDER_TEST_TARGETS"]?.split(separator: ",") {
    package.targets.removeAll { target in target.type == .test && !names.contains { $0 == target.name } }
}

// Products of other packages. Each product of this package except the engine has a trait of the same name. Products of
// other packages that only some traits need are used under these traits, so that a package that depends on this one
// resolves only what its traits need. All traits are enabled by default, because the tests need them. tools/packages
// checks the result.
extension Target.Dependency {
    static let crypto = product(name: "Crypto", package: "swift-crypto")
    static let cryptoExtras = product(name: "CryptoExtras", package: "swift-crypto")
    static let logging = product(name: "Logging", package: "swift-log")
    static let systemPackage = product(name: "SystemPackage", package: "swift-system")

    static let httpTypes = product("HTTPTypes", "swift-http-types", "HTTPCaching", "TestOrigin")
    static let structuredFields = product("RawStructuredFieldValues", "swift-http-structured-headers", "HTTPCaching")

    static let protobuf = product("SwiftProtobuf", "swift-protobuf", "LarderObjects")
    static let grpcCore = product("GRPCCore", "grpc-swift-2", "LarderObjectsGRPC")
    static let grpcNIOTransport = product(
        "GRPCNIOTransportHTTP2Posix", "grpc-swift-nio-transport", "LarderObjectsGRPC")
    static let grpcProtobuf = product("GRPCProtobuf", "grpc-swift-protobuf", "LarderObjectsGRPC")

    static let metrics = product("Metrics", "swift-metrics", "LarderMetrics")
    static let metricsTestKit = product("MetricsTestKit", "swift-metrics", "LarderMetrics")

    static let nioCore = nio("NIOCore")
    static let nioEmbedded = nio("NIOEmbedded")
    static let nioHTTP1 = nio("NIOHTTP1")
    static let nioPosix = nio("NIOPosix")
    static let nioTLS = nio("NIOTLS")
    static let nioHPACK = product("NIOHPACK", "swift-nio-http2", "LarderGateway", "LarderNIOTransport")
    static let nioHTTP2 = product("NIOHTTP2", "swift-nio-http2", "LarderGateway", "LarderNIOTransport")
    static let nioHTTPCompression = product("NIOHTTPCompression", "swift-nio-extras", "LarderAsyncHTTPClient")
    static let nioHTTPTypes = product("NIOHTTPTypes", "swift-nio-extras", "LarderGateway")
    static let nioHTTPTypesHTTP2 = product("NIOHTTPTypesHTTP2", "swift-nio-extras", "LarderGateway")
    static let nioSSL = product(
        "NIOSSL", "swift-nio-ssl", "LarderAsyncHTTPClient", "LarderGateway", "LarderNIOTransport", "TestOrigin")

    static let asyncHTTPClient = product("AsyncHTTPClient", "async-http-client", "LarderAsyncHTTPClient")
    static let hummingbird = product("Hummingbird", "hummingbird", "LarderHummingbird")
    static let hummingbirdHTTP2 = product("HummingbirdHTTP2", "hummingbird", "LarderHummingbird")
    static let hummingbirdTesting = product("HummingbirdTesting", "hummingbird", "LarderHummingbird")
    static let serviceLifecycle = product("ServiceLifecycle", "swift-service-lifecycle", "LarderHummingbird")
    static let argumentParser = product("ArgumentParser", "swift-argument-parser", "cachectl")

    private static func nio(_ name: String) -> Self {
        product(
            name, "swift-nio", "LarderAsyncHTTPClient", "LarderGateway", "LarderHummingbird", "LarderNIOTransport",
            "TestOrigin")
    }

    /// A product that is used where one of the traits is enabled.
    private static func product(_ name: String, _ package: String, _ traits: String...) -> Self {
        product(name: name, package: package, condition: .when(traits: Set(traits)))
    }
}
