// swift-tools-version: 6.3
import PackageDescription

// The programs that tools/bench adapters runs: a package of its own, so that the other benchmarks resolve no server.
let package = Package(
    name: "adapters-bench",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(name: "larder", path: "../../", traits: ["LarderAsyncHTTPClient", "LarderHummingbird"]),
        .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1", traits: []),
        .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
    ],
    targets: [
        .executableTarget(
            name: "adapters-bench",
            dependencies: [
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "Larder", package: "larder"),
                .product(name: "LarderAsyncHTTPClient", package: "larder"),
                .product(name: "LarderHummingbird", package: "larder"),
            ]
        )
    ],
    swiftLanguageModes: [.v6]
)
