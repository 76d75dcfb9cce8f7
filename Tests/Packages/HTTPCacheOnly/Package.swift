// swift-tools-version: 6.3
import PackageDescription

// A package that uses the HTTP cache with a transport of its own: tools/packages checks that it resolves neither
// SwiftNIO nor what else the transports, the gateway and the command line need.
let package = Package(
    name: "HTTPCacheOnly",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "larder", path: "../../..", traits: ["LarderHTTP"])],
    targets: [
        .executableTarget(
            name: "HTTPCacheOnly",
            dependencies: [
                .product(name: "Larder", package: "larder"),
                .product(name: "LarderHTTP", package: "larder"),
            ],
            path: "Sources")
    ],
    swiftLanguageModes: [.v6]
)
