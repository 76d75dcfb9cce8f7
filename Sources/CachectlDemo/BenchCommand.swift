import ArgumentParser
import CachectlCore
import Larder
import SystemPackage

/// `bench`: rough figures for this machine and this disk.
package struct BenchCommand: ParsableCommand {
    package static let configuration = CommandConfiguration(
        commandName: "bench",
        abstract: "Compare puts, gets and removals with plain files.",
        discussion: """
            Takes a few seconds and gives only a rough idea. The bodies are distinct and incompressible, and are \
            created before the clock starts. Plain files are written under a temporary name and renamed, read whole, \
            looked up with stat(2) and unlinked. Neither side waits for the disk, except that puts include the last \
            commit of the store. Without --store the store is in a temporary directory; with --store the bodies are \
            put into that store and removed again.
            """)

    @OptionGroup var options: ScratchOptions

    @Option(
        help: ArgumentHelp("Bytes to write for each body size. Default: 32MiB.", valueName: "size"),
        transform: SizeArgument.parse)
    var volume: ByteCount = .mebibytes(32)

    package init() {}

    package func validate() throws {
        if volume > .gibibytes(1) { throw ValidationError("--volume: \(volume) is too large. The maximum is 1GiB.") }
    }

    package func run() throws {
        Interruption.listen()
        // The same disk as for the store.
        let directory = try TemporaryDirectory("bench")
        defer { directory.remove() }
        let target = options.target(orIn: directory.path.appending("store"))
        let results = try target.withStore(.creating) { store in
            let bench = Bench(store, files: directory.path.appending("files"))
            return try Bench.sizes.map { try bench.run(bodySize: $0, volume: volume) }
        }
        try target.print(results.flatMap(\.self).map(BenchJSON.init), orText: Self.table(results.flatMap(\.self)))
    }

    private static func table(_ results: [Bench.Result]) -> String {
        var table = Table(
            [.left, .right, .right, .right, .right, .right],
            header: ["OPERATION", "BODY", "COUNT", "STORE /s", "FILES /s", "RATIO"])
        for result in results {
            table.add(
                result.operation, ByteCount.binary(result.bodySize), Render.count(result.count),
                Render.count(Int64(result.storeRate)), Render.count(Int64(result.fileRate)),
                Render.decimal(result.ratio, digits: 2) + " x")
        }
        return table.text
    }
}

extension ByteCount {
    /// `16 KiB`, for powers of two.
    fileprivate static func binary(_ count: Int) -> String {
        count < 1 << 20 ? "\(count >> 10) KiB" : "\(count >> 20) MiB"
    }
}

/// `bench --json`.
private struct BenchJSON: Encodable {
    let operation: String
    let bodyBytes: Int
    let count: Int
    let storePerSecond: Double
    let filesPerSecond: Double
    let ratio: Double

    init(_ result: Bench.Result) {
        operation = result.operation
        bodyBytes = result.bodySize
        count = result.count
        storePerSecond = result.storeRate
        filesPerSecond = result.fileRate
        ratio = result.ratio
    }
}
