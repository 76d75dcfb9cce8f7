// swift-tools-version: 6.2
import PackageDescription

// Coverage-guided fuzzing with libFuzzer: see tools/fuzz. Apart from the root package, so that nobody who uses it builds this.
let package = Package(
    name: "larder-fuzz",
    platforms: [.macOS(.v15)],
    products: [.library(name: "FuzzTargets", type: .static, targets: ["FuzzTargets"])],
    dependencies: [
        .package(name: "larder", path: "../"),
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    ],
    targets: [
        .target(
            name: "FuzzTargets",
            dependencies: [
                .product(name: "Larder", package: "larder"),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ]
        )
    ],
    swiftLanguageModes: [.v6]
)
