// swift-tools-version: 6.3
import PackageDescription

// A package that uses the cache for URLSession: tools/packages checks that it resolves no SwiftNIO.
let package = Package(
    name: "URLSessionOnly",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "larder", path: "../../..", traits: ["LarderURLSession"])],
    targets: [
        .executableTarget(
            name: "URLSessionOnly",
            dependencies: [
                .product(name: "Larder", package: "larder"),
                .product(name: "LarderHTTP", package: "larder"),
                .product(name: "LarderURLSession", package: "larder"),
            ],
            path: "Sources")
    ],
    swiftLanguageModes: [.v6]
)
