import Larder

/// Placeholder until the run with many processes.
enum Latencies {
    static func read(_ path: String, _ seed: UInt64, _ operations: Int) throws {}
    static func collect(_ path: String, _ operations: Int) throws {}
}
struct ProcessesRun { init(_ options: Options) throws {}; func run() throws -> Bool { false } }
struct PowerLossRun { init(_ options: Options) throws {}; func run() throws -> Bool { false } }
struct ResourcesRun { init(_ options: Options) throws {}; func run() throws -> Bool { false } }
