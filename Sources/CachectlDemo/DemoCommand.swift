import ArgumentParser
import CachectlCore
import Larder
import SystemPackage

/// `demo`: shows a store and a gateway at work on real files.
package struct DemoCommand: ParsableCommand {
    package static let configuration = CommandConfiguration(
        commandName: "demo",
        abstract:
            "Show a store and a gateway at work on the files of a directory.",
        discussion: """
            The budget of the store is a third of the size of the directory. First, readers look up files in a skewed \
            order, writers store the files that were missed, and another thread measures the store's size on disk. \
            Then a web server offers the same files, and clients request them through a caching gateway over loopback. \
            Afterwards the gateway keeps running until Ctrl-C, to be tried with curl or a browser (--stay; the default \
            on a terminal). Each half takes --seconds, or ends at Ctrl-C. The store is temporary unless --store names \
            a directory. Exits 1 if a check failed.
            """)

    @OptionGroup var options: ScratchOptions

    @Argument(help: "The directory.", completion: .directory)
    var directory = "/usr/share"

    @Option(help: ArgumentHelp("Duration of each half in seconds, 1 ... 86400.", valueName: "n"))
    var seconds = 20

    @Option(help: ArgumentHelp("Number of threads that look up files, 1 ... 32.", valueName: "n"))
    var readers = 2

    @Option(help: ArgumentHelp("Number of threads that store files, 1 ... 32.", valueName: "n"))
    var writers = 2

    @Option(help: ArgumentHelp("Number of clients of the gateway, 1 ... 256.", valueName: "n"))
    var clients = 8

    @Flag(help: "Show only the store, without a gateway.")
    var storeOnly = false

    @Flag(inversion: .prefixedNo, help: "Keep the gateway running until Ctrl-C. Default: only on a terminal.")
    var stay: Bool?

    @Option(
        help: ArgumentHelp(
            "Byte budget. Default: a third of the size of the files, at least 4 MiB.", valueName: "size"),
        transform: SizeArgument.parseBudget)
    var budget: ByteCount?

    package init() {}

    package func validate() throws {
        if !(1...86_400).contains(seconds) {
            throw ValidationError("--seconds: \(seconds) is out of range. Use 1 ... 86400.")
        }
        if !(1...32).contains(readers) { throw ValidationError("--readers: \(readers) is out of range. Use 1 ... 32.") }
        if !(1...256).contains(clients) {
            throw ValidationError("--clients: \(clients) is out of range. Use 1 ... 256.")
        }
        if !(1...32).contains(writers) { throw ValidationError("--writers: \(writers) is out of range. Use 1 ... 32.") }
    }

    package func run() throws {
        Interruption.listen()
        let corpus = try Corpus(try FileTreeWalk.root(FilePath(directory)))
        let limit = budget ?? max(ByteCount(corpus.bytes / 3), .mebibytes(4))
        let temporary = options.store == nil ? try TemporaryDirectory("demo") : nil
        defer { temporary?.remove() }
        let target = options.target(orIn: (temporary?.path ?? ".").appending("store"))
        if !options.flags.json {
            try Output.write(
                "\(Render.count(corpus.files.count)) files in \(corpus.root), \(ByteCount(corpus.bytes)); "
                    + "budget \(limit); \(writers) writers, \(readers) readers, \(seconds) s; store \(target.path)\n")
        }
        let (report, web) = try target.withStore(.creating) { store in
            try Self.requireOwn(store, limit)
            try store.setByteBudget(limit)
            let report = try show(store, corpus)
            if !options.flags.json { try Output.write(report.text) }
            if storeOnly || report.wasInterrupted { return (report, WebReport?.none) }
            return (report, try showGateway(store, corpus))
        }
        if options.flags.json { try Output.write(JSON.text(DemoJSON(report, web))) }
        if report.wasInterrupted || (Interruption.hasCome && web == nil) { throw CommandError(.interrupted, nil) }
        if !report.isFine || web?.isFine == false { throw CommandError.found }
    }

    /// The second half, over HTTP.
    private func showGateway(_ store: Store, _ corpus: Corpus) throws -> WebReport {
        let demo = WebDemo(store, corpus)
        let running = try Blocking.run { try await demo.start() }
        if !options.flags.json {
            try Output.write(
                "\ngateway at \(running.address) in front of a web server with the same files; \(clients) clients, "
                    + "\(seconds) s; status page \(running.admin)\n")
        }
        let progress = DemoProgress(isQuiet: options.flags.json)
        let clients = clients
        let traffic = Task { await demo.run(clients: clients, against: running) }
        while !Interruption.hasCome, progress.elapsed < .seconds(seconds) {
            usleep(100_000)
            progress.update(demo, store.statistics)
        }
        let wasInterrupted = Interruption.hasCome
        let elapsed = progress.elapsed
        demo.end()
        Blocking.wait { await traffic.value }
        progress.finish()
        let report = WebReport(
            figures: demo.snapshot, originRequests: demo.origin.requests.load(ordering: .relaxed),
            notModified: demo.origin.notModified.load(ordering: .relaxed), statistics: try store.statistics(),
            elapsed: elapsed)
        if !options.flags.json { try Output.write(report.text) }
        if stay ?? (Output.isTerminal && !options.flags.json), !wasInterrupted {
            try Output.write(
                "\nthe gateway runs at \(running.address) until Ctrl-C; try:\n"
                    + "  curl -i '\(running.address)\(corpus.path(0))'\n")
            while !Interruption.hasCome { usleep(100_000) }
        }
        Blocking.wait {
            await running.stop()
            await demo.origin.stop()
        }
        return report
    }

    /// Refuses a store in use: the demo sets the budget, which displaces entries.
    private static func requireOwn(_ store: Store, _ limit: ByteCount) throws {
        let statistics = try store.statistics()
        if statistics.entryCount > 0, statistics.budget.bytes != limit {
            throw CommandError(
                .usage,
                "\(store.path) has \(Render.count(statistics.entryCount)) entries, and the demo would set its "
                    + "budget to \(limit): use a new directory, or omit --store")
        }
    }

    private func show(_ store: Store, _ corpus: Corpus) throws -> DemoReport {
        let run = DemoRun(store, corpus)
        let sampler = Sampler(store.path, budget: try store.budget().bytes.bytes)
        let progress = DemoProgress(isQuiet: options.flags.json)
        defer { progress.finish() }
        try sampler.start()
        do {
            try run.run(readers: readers, writers: writers) {
                progress.update(run.counters, store.statistics)
                return Interruption.hasCome || progress.elapsed >= .seconds(seconds)
            }
        } catch {
            _ = sampler.finish()
            throw error
        }
        let elapsed = progress.elapsed
        let (highest, samples) = sampler.finish()
        progress.finish()
        let (statistics, recounted) = try Self.sizes(store)
        let check = try store.check()
        return DemoReport(
            figures: run.counters.snapshot, statistics: statistics, recounted: recounted,
            highest: max(highest, recounted),
            samples: samples + 1, check: check, elapsed: elapsed, wasInterrupted: Interruption.hasCome)
    }

    /// The size that the store reports and the size that stat(2) finds, at the same moment: displacement to the lower
    /// watermark continues for a moment after the last put, and other processes may be writing. A wrong report stays
    /// wrong in every comparison.
    private static func sizes(_ store: Store) throws -> (Statistics, recounted: Int64) {
        for _ in 0..<100 {
            let statistics = try store.statistics()
            let recounted = try Recount.allocated(store.path)
            if statistics.allocatedBytes.bytes == recounted { return (statistics, recounted) }
            usleep(20_000)
        }
        return (try store.statistics(), try Recount.allocated(store.path))
    }
}
