// swift-tools-version: 6.3
import PackageDescription

// A package of its own, so that `larder-bench` resolves nothing that only this needs.
let package = Package(
    name: "urlsession-bench",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "larder", path: "../..", traits: ["LarderURLSession"])],
    targets: [
        .executableTarget(
            name: "urlsession-bench",
            dependencies: [
                .product(name: "Larder", package: "larder"),
                .product(name: "LarderHTTP", package: "larder"),
                .product(name: "LarderURLSession", package: "larder"),
            ],
            path: "Sources")
    ],
    swiftLanguageModes: [.v6]
)
