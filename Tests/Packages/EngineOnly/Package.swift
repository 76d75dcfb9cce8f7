// swift-tools-version: 6.3
import PackageDescription

// A package that uses the engine alone: tools/packages checks that it resolves only what the engine needs.
let package = Package(
    name: "EngineOnly",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "larder", path: "../../..", traits: [])],
    targets: [
        .executableTarget(
            name: "EngineOnly", dependencies: [.product(name: "Larder", package: "larder")], path: "Sources")
    ],
    swiftLanguageModes: [.v6]
)
