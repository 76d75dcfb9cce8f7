import ArgumentParser
import Foundation
import SystemPackage

/// `trace`: P11, the miss ratio of the store's displacement order on a trace of real requests.
struct TraceCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "trace",
        abstract: "Replay a trace (libCacheSim's oracleGeneral) and compare misses with exact LRU.",
        discussion: """
            The store displaces in its own order; the replay counts the bytes the trace names. Every request is a commit: use a \
            --path in memory. Exit code 1 if a ratio is off by more than 0.001.
            """)

    @Option(help: "The trace.") var file: String
    @Option(help: "Capacities in bytes.")
    var capacities = "20297697,101488486,202976972,405953945"
    @Option(help: "Replay only this many requests.") var limit: Int?
    @OptionGroup var work: WorkOptions

    func run() throws {
        Interruption.listen()
        var trace = try TraceFile(file)
        if let limit { trace = TraceFile(requests: Array(trace.requests.prefix(limit))) }
        var isOff = false
        print("CAPACITY     STORE: OBJECTS  BYTES    LRU: OBJECTS  BYTES    DISPLACED")
        for text in capacities.split(separator: ",") {
            guard let capacity = Int(text), capacity > 0 else {
                throw ValidationError("--capacities: '\(text)' is not a number")
            }
            let replay = TraceReplay(trace: trace, capacity: capacity)
            let store = try WorkDirectory.with(work.parent) { try replay.run($0.make("trace")) }
            let exact = replay.exact()
            func ratio(_ value: Double) -> String { Render.decimal(value, 4) }
            print(
                "\(capacity)".padding(toLength: 13, withPad: " ", startingAt: 0)
                    + "\(ratio(store.byObject))          \(ratio(store.byByte))   "
                    + "\(ratio(exact.byObject))        \(ratio(exact.byByte))   \(Render.count(store.displaced))")
            if abs(store.byObject - exact.byObject) > 0.001 || abs(store.byByte - exact.byByte) > 0.001 { isOff = true }
        }
        if isOff { throw ExitCode(1) }
    }
}
