// swift-tools-version: 6.3
import PackageDescription

// Coverage-guided fuzzing with libFuzzer: see tools/fuzz. This package is separate from the root package, so that
// users of Larder never build it.
let package = Package(
    name: "larder-fuzz",
    platforms: [.macOS(.v15)],
    products: [.library(name: "FuzzTargets", type: .static, targets: ["FuzzTargets"])],
    dependencies: [
        .package(name: "larder", path: "../"),
        .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-protobuf", from: "1.39.0"),
    ],
    targets: [
        .target(
            name: "FuzzTargets",
            dependencies: [
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "HTTPCaching", package: "larder"),
                .product(name: "Larder", package: "larder"),
                .product(name: "LarderHTTP", package: "larder"),
                .product(name: "LarderObjects", package: "larder"),
                .product(name: "LarderPackages", package: "larder"),
                .product(name: "SwiftProtobuf", package: "swift-protobuf"),
                .product(name: "_FuzzedModules", package: "larder"),
            ]
        )
    ],
    swiftLanguageModes: [.v6]
)
