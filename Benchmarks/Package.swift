// swift-tools-version: 6.3
import PackageDescription

// A package of its own, so that users of Larder never resolve what only the benchmarks need.
let package = Package(
    name: "larder-benchmarks",
    platforms: [.macOS(.v15)],
    products: [
        .executable(name: "larder-bench", targets: ["larder-bench"])
    ],
    dependencies: [
        .package(name: "larder", path: "../", traits: []),
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-system", from: "1.8.1"),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
        .package(url: "https://github.com/HdrHistogram/hdrhistogram-swift", from: "0.2.0"),
    ],
    targets: [
        .systemLibrary(
            name: "CRawLMDB",
            pkgConfig: "lmdb",
            providers: [.apt(["liblmdb-dev"]), .brew(["lmdb"])]
        ),
        .executableTarget(
            name: "larder-bench",
            dependencies: [
                "CRawLMDB",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "Histogram", package: "hdrhistogram-swift"),
                .product(name: "Larder", package: "larder"),
                .product(name: "LarderValues", package: "larder"),
                .product(name: "SystemPackage", package: "swift-system"),
            ]
        ),
    ],
    swiftLanguageModes: [.v6]
)
