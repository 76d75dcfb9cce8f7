// swift-tools-version: 6.3
import PackageDescription

// The program of README.md, and those of the cookbook, one target each. tools/examples runs them.

/// A program that uses only the store.
func program(_ name: String, _ dependencies: Target.Dependency...) -> Target {
    .executableTarget(
        name: name, dependencies: ["Recipes", .product(name: "Larder", package: "larder")] + dependencies)
}

/// A program that uses the HTTP cache.
func httpProgram(_ name: String) -> Target {
    program(
        name, .product(name: "LarderHTTP", package: "larder"), .product(name: "LarderNIOTransport", package: "larder"),
        .product(name: "TestOrigin", package: "larder"))
}

let package = Package(
    name: "Examples",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "larder", path: "../", traits: ["LarderNIOTransport", "TestOrigin"])],
    targets: [
        .target(name: "Recipes"),
        program("BudgetWatch"),
        program("BuildCache"),
        program("CDNNode"),
        httpProgram("HTTPClient"),
        .executableTarget(name: "Hello", dependencies: [.product(name: "Larder", package: "larder")]),
        program("Housekeeping"),
        program("ImageCache"),
        program("ModelResponses"),
        httpProgram("OfflineApp"),
        program("PackageMirror"),
        program("SendFile"),
        program("SessionCache"),
        program("SharedStore"),
        program("URLCacheMigration"),
    ],
    swiftLanguageModes: [.v6]
)
