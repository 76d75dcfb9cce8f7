// swift-tools-version: 6.2
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
        .library(name: "LarderNIOTransport", targets: ["LarderNIOTransport"]),
        .library(name: "TestOrigin", targets: ["TestOrigin"]),
        .executable(name: "cachectl", targets: ["cachectl"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
        .package(url: "https://github.com/apple/swift-http-structured-headers", from: "1.7.0"),
        .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/apple/swift-nio-extras", from: "1.35.2"),
        .package(url: "https://github.com/apple/swift-nio-http2", from: "1.46.0"),
        .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.6"),
        .package(url: "https://github.com/apple/swift-system", from: "1.8.1"),
        .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
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
        .target(name: "CLarder"),
        // Empty but in builds with a sanitizer: see tools/sanitize.
        .target(name: "VisibleLocks"),
        .target(name: "Failpoints", dependencies: ["VisibleLocks"], swiftSettings: failpoints),
        .target(name: "LMDB", dependencies: ["CLMDB", "Failpoints"], swiftSettings: failpoints),
        .target(
            name: "Larder",
            dependencies: [
                "CLarder",
                "CZlib",
                "Failpoints",
                "LMDB",
                "VisibleLocks",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "SystemPackage", package: "swift-system"),
            ],
            swiftSettings: failpoints
        ),
        .target(
            name: "HTTPCaching",
            dependencies: [
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "RawStructuredFieldValues", package: "swift-http-structured-headers"),
            ]
        ),
        .target(
            name: "HTTPWire",
            dependencies: [.product(name: "HTTPTypes", package: "swift-http-types")]
        ),
        .target(
            name: "LarderHTTP",
            dependencies: [
                "VisibleLocks",
                "HTTPCaching",
                "Larder",
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "SystemPackage", package: "swift-system"),
            ]
        ),
        .target(
            name: "LarderNIOTransport",
            dependencies: [
                "VisibleLocks",
                "HTTPWire",
                "LarderHTTP",
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHPACK", package: "swift-nio-http2"),
                .product(name: "NIOHTTP2", package: "swift-nio-http2"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                .product(name: "NIOTLS", package: "swift-nio"),
            ]
        ),
        .target(
            name: "LarderAsyncHTTPClient",
            dependencies: [
                "LarderHTTP",
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ]
        ),
        .target(
            name: "LarderGateway",
            dependencies: [
                "VisibleLocks",
                "HTTPCaching",
                "HTTPWire",
                "Larder",
                "LarderHTTP",
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP2", package: "swift-nio-http2"),
                .product(name: "NIOHTTPTypes", package: "swift-nio-extras"),
                .product(name: "NIOHTTPTypesHTTP2", package: "swift-nio-extras"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                .product(name: "NIOTLS", package: "swift-nio"),
                .product(name: "SystemPackage", package: "swift-system"),
            ]
        ),
        .target(
            name: "TestOrigin",
            dependencies: [
                "VisibleLocks",
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
            ]
        ),
        .executableTarget(
            name: "cachectl",
            dependencies: [
                "HTTPCaching",
                "Larder",
                "LarderGateway",
                "LarderHTTP",
                "LarderNIOTransport",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "SystemPackage", package: "swift-system"),
            ]
        ),
        .executableTarget(
            name: "LarderTestWorker",
            dependencies: ["CEffort", "Larder"],
            path: "Tests/LarderTestWorker"
        ),
        .target(name: "CEffort", path: "Tests/CEffort"),
        .executableTarget(
            name: "gateway-torture",
            dependencies: [
                "HTTPTestSupport",
                "TestOrigin",
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
            ],
            path: "Tests/GatewayTorture"
        ),
        .executableTarget(name: "LarderEffort", dependencies: ["CEffort", "Larder"], path: "Tests/LarderEffort"),
        .executableTarget(
            name: "torture",
            dependencies: [
                "Failpoints", "Larder", "VisibleLocks", .product(name: "SystemPackage", package: "swift-system"),
            ],
            path: "Tests/Torture",
            swiftSettings: failpoints
        ),
        .target(
            name: "TestSupport",
            dependencies: ["Larder", "VisibleLocks", .product(name: "SystemPackage", package: "swift-system")],
            path: "Tests/TestSupport"
        ),
        .target(
            name: "HTTPScenarios",
            dependencies: ["HTTPCaching", .product(name: "HTTPTypes", package: "swift-http-types")],
            path: "Tests/HTTPScenarios"
        ),
        .testTarget(
            name: "HTTPCachingTests",
            dependencies: ["HTTPCaching", "HTTPScenarios", .product(name: "HTTPTypes", package: "swift-http-types")]
        ),
        .testTarget(
            name: "LarderHTTPTests",
            dependencies: [
                "VisibleLocks",
                "HTTPScenarios",
                "LarderHTTP",
                "TestSupport",
                .product(name: "HTTPTypes", package: "swift-http-types"),
            ]
        ),
        .testTarget(
            name: "HTTPWireTests",
            dependencies: ["HTTPWire", .product(name: "HTTPTypes", package: "swift-http-types")]
        ),
        .testTarget(name: "LMDBTests", dependencies: ["CLarder", "LMDB", "TestSupport"]),
        .testTarget(
            name: "LarderTests",
            dependencies: ["Failpoints", "Larder", "TestSupport", "VisibleLocks", "LarderTestWorker", "LarderEffort"],
            exclude: ["Golden"],
            swiftSettings: failpoints
        ),
        .target(
            name: "HTTPTestSupport",
            dependencies: [
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ],
            path: "Tests/HTTPTestSupport"
        ),
        .testTarget(
            name: "TestOriginTests",
            dependencies: [
                "HTTPTestSupport", "LarderHTTP", "LarderNIOTransport", "TestOrigin",
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
            ]
        ),
        .testTarget(
            name: "LarderAsyncHTTPClientTests",
            dependencies: [
                "Larder",
                "LarderAsyncHTTPClient",
                "LarderHTTP",
                "TestOrigin",
                "TestSupport",
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
            ]
        ),
        .testTarget(
            name: "LarderGatewayTests",
            dependencies: [
                "VisibleLocks",
                "HTTPCaching", "HTTPScenarios", "HTTPTestSupport", "Larder", "LarderGateway", "LarderHTTP",
                "LarderNIOTransport", "TestOrigin", "TestSupport",
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP2", package: "swift-nio-http2"),
                .product(name: "NIOHTTPTypes", package: "swift-nio-extras"),
                .product(name: "NIOHTTPTypesHTTP2", package: "swift-nio-extras"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                .product(name: "SystemPackage", package: "swift-system"),
            ]
        ),
        .testTarget(
            name: "DocumentationTests",
            dependencies: [
                "HTTPCaching",
                "Larder",
                "LarderGateway",
                "LarderHTTP",
                "LarderNIOTransport",
                .product(name: "HTTPTypes", package: "swift-http-types"),
            ]
        ),
        .testTarget(
            name: "TransportTests",
            dependencies: [
                "VisibleLocks",
                "HTTPWire",
                "LarderHTTP",
                "LarderNIOTransport",
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHPACK", package: "swift-nio-http2"),
                .product(name: "NIOHTTP2", package: "swift-nio-http2"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
            ]
        ),
        .testTarget(name: "CachectlTests", dependencies: ["TestOrigin", "TestSupport", "cachectl"]),
    ],
    swiftLanguageModes: [.v6]
)
