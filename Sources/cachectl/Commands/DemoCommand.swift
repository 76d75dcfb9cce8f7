import ArgumentParser
import Larder
import SystemPackage

/// `demo`: shows on real files what a store does.
struct DemoCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "demo",
        abstract: "Store a directory under a budget of a third of its size, and show what happens.",
        discussion: """
            Readers look files up in a skewed order, writers store what was missed, and a fifth thread counts what the \
            store takes on disk. Ends after --seconds, or in order with Ctrl-C. The store lies in a temporary directory and \
            is removed at the end, unless --store names one. Exits 1 if a promise was broken.
            """)

    @OptionGroup var options: StoreOptions

    @Argument(help: "The directory.", completion: .directory)
    var directory = "/usr/share"

    @Option(help: ArgumentHelp("How long, 1 ... 86400.", valueName: "n"))
    var seconds = 20

    @Option(help: ArgumentHelp("Threads that look files up, 1 ... 32.", valueName: "n"))
    var readers = 2

    @Option(help: ArgumentHelp("Threads that store files, 1 ... 32.", valueName: "n"))
    var writers = 2

    @Option(
        help: ArgumentHelp("Byte budget. Default: a third of the files' size, at least 1 MiB.", valueName: "size"),
        transform: SizeArgument.parseBudget)
    var budget: ByteCount?

    func validate() throws {
        if !(1...86_400).contains(seconds) { throw ValidationError("--seconds \(seconds): give 1 ... 86400.") }
        if !(1...32).contains(readers) { throw ValidationError("--readers \(readers): give 1 ... 32.") }
        if !(1...32).contains(writers) { throw ValidationError("--writers \(writers): give 1 ... 32.") }
    }

    func run() throws {
        Interruption.listen()
        let corpus = try Corpus(try ImportCommand.absolute(FilePath(directory)))
        let limit = budget ?? max(ByteCount(corpus.bytes / 3), Budget.minimumBytes)
        var target = options
        var temporary: TemporaryDirectory?
        if options.store == nil {
            let made = try TemporaryDirectory("demo")
            temporary = made
            target.store = made.path.appending("store").string
        }
        defer { temporary?.remove() }
        if !options.json {
            try Output.write(
                "\(Render.count(corpus.files.count)) files of \(corpus.root), \(ByteCount(corpus.bytes)); a budget of \(limit); "
                    + "\(writers) writers, \(readers) readers, \(seconds) s; the store: \(target.path)\n")
        }
        let report = try target.withStore(.creating) { store in
            try Self.requireOwn(store, limit)
            try store.setByteBudget(limit)
            return try show(store, corpus)
        }
        try options.print(DemoJSON(report), orText: report.text)
        if report.wasInterrupted { throw CommandError(.interrupted, nil) }
        if !report.isFine { throw CommandError.found }
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
        let progress = DemoProgress(isQuiet: options.json)
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
