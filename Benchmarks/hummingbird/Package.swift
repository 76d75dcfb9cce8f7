// swift-tools-version: 6.3
import PackageDescription

// The server that tools/bench hummingbird measures: a package of its own, so that the other benchmarks resolve no server.
let package = Package(
    name: "hummingbird-bench",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(name: "larder", path: "../../", traits: ["LarderHummingbird"]),
        .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1", traits: []),
    ],
    targets: [
        .executableTarget(
            name: "hummingbird-bench",
            dependencies: [
                .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "Larder", package: "larder"),
                .product(name: "LarderHummingbird", package: "larder"),
            ]
        )
    ],
    swiftLanguageModes: [.v6]
)
