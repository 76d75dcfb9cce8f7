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

/// A program that uses AsyncHTTPClient.
func clientProgram(_ name: String) -> Target {
    program(
        name, .product(name: "LarderAsyncHTTPClient", package: "larder"),
        .product(name: "AsyncHTTPClient", package: "async-http-client"),
        .product(name: "TestOrigin", package: "larder"))
}

/// A program that is a Hummingbird server, and its client.
func serverProgram(_ name: String) -> Target {
    program(
        name, .product(name: "LarderHummingbird", package: "larder"),
        .product(name: "Hummingbird", package: "hummingbird"),
        .product(name: "HummingbirdTesting", package: "hummingbird"))
}

/// A program that uses URLSession with a cache.
func sessionProgram(_ name: String) -> Target {
    program(
        name, .product(name: "LarderHTTP", package: "larder"), .product(name: "LarderURLSession", package: "larder"),
        .product(name: "TestOrigin", package: "larder"))
}

/// A program that keeps decoded values.
func valuesProgram(_ name: String) -> Target {
    program(name, .product(name: "LarderValues", package: "larder"))
}

/// A program that reports metrics, and makes its own logger.
func metricsProgram(_ name: String) -> Target {
    program(
        name, .product(name: "LarderMetrics", package: "larder"), .product(name: "Logging", package: "swift-log"),
        .product(name: "MetricsTestKit", package: "swift-metrics"))
}

let package = Package(
    name: "Examples",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(
            name: "larder", path: "../",
            traits: [
                "LarderAsyncHTTPClient", "LarderHummingbird", "LarderMetrics", "LarderNIOTransport", "LarderURLSession",
                "LarderValues", "TestOrigin",
            ]),
        .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1", traits: []),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
        .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
    ],
    targets: [
        .target(name: "Recipes"),
        program("BudgetWatch"),
        program("BuildCache"),
        clientProgram("CachedClient"),
        serverProgram("CachedServer"),
        program("CDNNode"),
        valuesProgram("DecodedValues"),
        httpProgram("HTTPClient"),
        .executableTarget(name: "Hello", dependencies: [.product(name: "Larder", package: "larder")]),
        program("Housekeeping"),
        program("ImageCache"),
        program("ModelResponses"),
        metricsProgram("Observing"),
        httpProgram("OfflineApp"),
        program("PackageMirror"),
        program("SendFile"),
        program("SessionCache"),
        program("SharedStore"),
        program("URLCacheMigration"),
        sessionProgram("URLSessionApp"),
    ],
    swiftLanguageModes: [.v6]
)
