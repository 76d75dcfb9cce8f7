// swift-tools-version: 6.3
import PackageDescription

// A package that uses packages of responses: tools/packages checks that it resolves no SwiftNIO.
let package = Package(
    name: "PackagesOnly",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "larder", path: "../../..", traits: ["LarderPackages"])],
    targets: [
        .executableTarget(
            name: "PackagesOnly",
            dependencies: [
                .product(name: "Larder", package: "larder"),
                .product(name: "LarderHTTP", package: "larder"),
                .product(name: "LarderPackages", package: "larder"),
            ],
            path: "Sources")
    ],
    swiftLanguageModes: [.v6]
)
