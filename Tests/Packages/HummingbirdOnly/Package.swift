// swift-tools-version: 6.3
import PackageDescription

// A server that keeps its responses: tools/packages checks that it resolves nothing that only the gateway and the
// command line need.
let package = Package(
    name: "HummingbirdOnly",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(name: "larder", path: "../../..", traits: ["LarderHummingbird"]),
        .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1", traits: []),
    ],
    targets: [
        .executableTarget(
            name: "HummingbirdOnly",
            dependencies: [
                .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "HummingbirdTesting", package: "hummingbird"),
                .product(name: "Larder", package: "larder"),
                .product(name: "LarderHummingbird", package: "larder"),
            ],
            path: "Sources")
    ],
    swiftLanguageModes: [.v6]
)
