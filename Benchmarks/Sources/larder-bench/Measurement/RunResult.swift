import SystemPackage

/// The result of one run of one workload, as printed and as JSON.
struct RunResult: Codable, Sendable {
    var workload: String
    var peer: String
    var bodySize: String
    var entries: Int
    var threads: Int
    var operations: Int
    /// Operations a second.
    var rate: Double
    /// Bytes of bodies a second.
    var byteRate: Double
    /// Nanoseconds.
    var latency: Percentiles?
    /// Bytes sent to the disk for each byte put, including the filling; nil if the kernel does not report it.
    var writtenPerByte: Double?
    /// Where the figure above is from.
    var writtenSource: String?
    /// Resident memory that is not backed by a file, at the end of the run: prepared names and bodies included.
    var anonymousBytes: Int64?
    /// Bytes of the index for each entry beyond bodies and metadata; nil for peers that have none.
    var indexBytesPerEntry: Double?

    /// Runs a workload.
    static func measure(_ workload: any Workload.Type, _ plan: Plan) throws -> RunResult {
        let before = ProcessFigures.writtenBytes()
        let tally = try workload.run(plan)
        let after = ProcessFigures.writtenBytes()
        var result = RunResult(
            workload: workload.name, peer: plan.kind.rawValue, bodySize: plan.size.description, entries: plan.entries,
            threads: plan.threads, operations: tally.operations, rate: tally.rate,
            byteRate: Double(tally.bytes) / max(tally.seconds, 1e-9), latency: Percentiles(tally))
        result.anonymousBytes = ProcessFigures.anonymousBytes()
        let stored = plan.bytesPut(by: workload, tally)
        if let before, let after, after > before, stored > 0 {
            result.writtenPerByte = Double(after - before) / Double(stored)
            result.writtenSource = "write_bytes of /proc/self/io"
        } else if stored > 0 {
            result.writtenPerByte = Double(FileTree.allocatedBytes(plan.path)) / Double(stored)
            result.writtenSource = "allocated bytes at the end (the kernel counts no writes here)"
        }
        if plan.kind == .larder || plan.kind == .larderSpan {
            result.indexBytesPerEntry = try IndexCost.measure(plan.path)
        }
        return result
    }
}

extension Plan {
    /// Bytes of bodies that a run of `workload` puts in total: those that fill the store, and those that are timed.
    fileprivate func bytesPut(by workload: any Workload.Type, _ tally: Tally) -> Int {
        let filled = (0..<min(entries, 100_000)).reduce(0) { $0 + bodies(length: $1) }
        let filling = entries > 100_000 ? filled / 100_000 * entries : filled
        switch workload.name {
        case FillSequential.name, FillRandom.name, DurablePut.name, Dedup.name, LargeStream.name: return tally.bytes
        case Overwrite.name, DisplaceChurn.name: return filling + tally.bytes
        case Mixed.name: return filling + tally.bytes * 13 / 98
        default: return filling
        }
    }

    private func bodies(length index: Int) -> Int { size.length(UInt64(index)) }
}
