import ArgumentParser
import CachectlCore
import Larder
import SystemPackage

/// `demo`: shows on real files what a store does.
package struct DemoCommand: ParsableCommand {
    package static let configuration = CommandConfiguration(
        commandName: "demo",
        abstract:
            "Store a directory under a budget of a third of its size, serve it through a gateway, and show what happens.",
        discussion: """
            First readers look files up in a skewed order, writers store what was missed, and a fifth thread counts what the \
            store takes on disk. Then a web server offers the same files, a caching gateway runs in front of it, and clients \
            ask over loopback. At the end the gateway stays up to be tried with curl or a browser, until Ctrl-C (--stay; the \
            default on a terminal). Each half takes --seconds, or ends in order with Ctrl-C. The store lies in a temporary \
            directory and is removed at the end, unless --store names one. Exits 1 if a promise was broken.
            """)

    @OptionGroup var options: ScratchOptions

    @Argument(help: "The directory.", completion: .directory)
    var directory = "/usr/share"

    @Option(help: ArgumentHelp("How long, 1 ... 86400.", valueName: "n"))
    var seconds = 20

    @Option(help: ArgumentHelp("Threads that look files up, 1 ... 32.", valueName: "n"))
    var readers = 2

    @Option(help: ArgumentHelp("Threads that store files, 1 ... 32.", valueName: "n"))
    var writers = 2

    @Option(help: ArgumentHelp("Clients that ask the gateway, 1 ... 256.", valueName: "n"))
    var clients = 8

    @Flag(help: "Show the store only, without a gateway.")
    var storeOnly = false

    @Flag(inversion: .prefixedNo, help: "Leave the gateway up at the end, until Ctrl-C. Default: on a terminal.")
    var stay: Bool?

    @Option(
        help: ArgumentHelp("Byte budget. Default: a third of the files' size, at least 1 MiB.", valueName: "size"),
        transform: SizeArgument.parseBudget)
    var budget: ByteCount?

    package init() {}

    package func validate() throws {
        if !(1...86_400).contains(seconds) { throw ValidationError("--seconds \(seconds): give 1 ... 86400.") }
        if !(1...32).contains(readers) { throw ValidationError("--readers \(readers): give 1 ... 32.") }
        if !(1...256).contains(clients) { throw ValidationError("--clients \(clients): give 1 ... 256.") }
        if !(1...32).contains(writers) { throw ValidationError("--writers \(writers): give 1 ... 32.") }
    }

    package func run() throws {
        Interruption.listen()
        let corpus = try Corpus(try TreeWalk.root(FilePath(directory)))
        let limit = budget ?? max(ByteCount(corpus.bytes / 3), Budget.minimumBytes)
        let temporary = options.store == nil ? try TemporaryDirectory("demo") : nil
        defer { temporary?.remove() }
        let target = options.target(orIn: (temporary?.path ?? ".").appending("store"))
        if !options.flags.json {
            try Output.write(
                "\(Render.count(corpus.files.count)) files of \(corpus.root), \(ByteCount(corpus.bytes)); a budget of \(limit); "
                    + "\(writers) writers, \(readers) readers, \(seconds) s; the store: \(target.path)\n")
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

    /// The second half: over HTTP.
    private func showGateway(_ store: Store, _ corpus: Corpus) throws -> WebReport {
        let demo = WebDemo(store, corpus)
        let running = try Blocking.run { try await demo.start() }
        if !options.flags.json {
            try Output.write(
                "\na gateway at \(running.address) in front of a web server with the same files; \(clients) clients, "
                    + "\(seconds) s; its figures: \(running.admin)\n")
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
                "\nthe gateway stays at \(running.address) until Ctrl-C; try it:\n"
                    + "  curl -i '\(running.address)\(corpus.path(0))'\n")
            while !Interruption.hasCome { usleep(100_000) }
        }
        Blocking.wait {
            await running.stop()
            await demo.origin.stop()
        }
        return report
    }

    /// The demo sets the budget, which displaces: not in a store that somebody uses.
    private static func requireOwn(_ store: Store, _ limit: ByteCount) throws {
        let statistics = try store.statistics()
        if statistics.entryCount > 0, statistics.budget.bytes != limit {
            throw CommandError(
                .usage,
                "\(store.path) has \(Render.count(statistics.entryCount)) entries, and the demo would set its budget to "
                    + "\(limit): name a new directory, or leave --store out")
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

    /// What the store reports and what stat(2) finds, of one moment: displacement to the lower watermark goes on for a
    /// moment after the last put, and other processes may be writing. A report that is wrong stays so, however often it is
    /// compared.
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
