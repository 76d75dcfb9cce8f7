// swift-tools-version: 6.3
import PackageDescription

// An object server in a program: tools/packages checks which packages it resolves.
let package = Package(
    name: "ObjectsGRPCOnly",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "larder", path: "../../..", traits: ["LarderObjectsGRPC"])],
    targets: [
        .executableTarget(
            name: "ObjectsGRPCOnly",
            dependencies: [
                .product(name: "Larder", package: "larder"),
                .product(name: "LarderObjects", package: "larder"),
                .product(name: "LarderObjectsGRPC", package: "larder"),
            ],
            path: "Sources")
    ],
    swiftLanguageModes: [.v6]
)
