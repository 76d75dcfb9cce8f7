// swift-tools-version: 6.3
import PackageDescription

// A package that uses the client that caches: tools/packages checks that it resolves neither Hummingbird nor what else
// the gateway and the command line need.
let package = Package(
    name: "AsyncHTTPClientOnly",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(name: "larder", path: "../../..", traits: ["LarderAsyncHTTPClient"]),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
    ],
    targets: [
        .executableTarget(
            name: "AsyncHTTPClientOnly",
            dependencies: [
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "Larder", package: "larder"),
                .product(name: "LarderAsyncHTTPClient", package: "larder"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ],
            path: "Sources")
    ],
    swiftLanguageModes: [.v6]
)
