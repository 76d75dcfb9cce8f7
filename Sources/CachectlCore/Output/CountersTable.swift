import Larder

/// What all processes have done with a store, for people to read: the second part of `stat`.
package enum CountersTable {
    /// Adds the lines.
    package static func add(_ counters: StoreCounters, to table: inout Table) {
        table.add("counted since", counters.since.description)
        let lookups = Double(counters.hits) + Double(counters.misses)
        var hits = "\(Render.count(counters.hits)), \(Render.count(counters.misses)) misses"
        if let ratio = counters.hitRatio, lookups > 0 {
            hits += " (\(Render.decimal(ratio * 100, digits: 1)) % of the lookups are hits)"
        }
        table.add("hits", hits)
        table.add("read", "\(counters.bytesRead)")
        table.add("puts", "\(Render.count(counters.puts)), \(counters.bytesWritten)")
        table.add("removed", Render.count(counters.removed))
        table.add("displaced", displaced(counters.displaced))
        table.add("commits", Render.count(counters.commits))
        table.add("lookup time", times(counters.lookupTimes))
        table.add("put time", times(counters.putTimes))
        table.add("commit time", times(counters.commitTimes))
        table.add("failures", failures(counters))
    }

    private static func displaced(_ displaced: StoreCounters.Displaced) -> String {
        var text =
            "\(Render.count(displaced.expired)) expired, \(Render.count(displaced.leastRecentlyUsed)) least recently used"
        let inMemory = (displaced.memoryOnlyExpired, displaced.memoryOnlyLeastRecentlyUsed)
        if inMemory != (0, 0) {
            text += "; in memory \(Render.count(inMemory.0)) and \(Render.count(inMemory.1))"
        }
        return text
    }

    private static func times(_ times: LatencyHistogram) -> String {
        guard let median = times.percentile(0.5) else { return times.count == 0 ? "-" : "more than 17 s" }
        let p99 = times.percentile(0.99).map { "below \(duration($0))" } ?? "more than 17 s"
        return "median below \(duration(median)), 99th percentile \(p99)"
    }

    /// `512 ns`, `16 us`, `4.2 ms`, `1.1 s`.
    static func duration(_ duration: Duration) -> String {
        let seconds = duration.inSeconds
        switch seconds {
        case ..<1e-6: return "\(Int((seconds * 1e9).rounded())) ns"
        case ..<1e-3: return "\(Int((seconds * 1e6).rounded())) us"
        case ..<1: return "\(Render.decimal(seconds * 1e3, digits: 1)) ms"
        default: return "\(Render.decimal(seconds, digits: 1)) s"
        }
    }

    private static func failures(_ counters: StoreCounters) -> String {
        var parts = StandingFailure.Work.allCases.compactMap { work in
            counters.failures[work].map { "\(Render.count($0)) \(work.rawValue)" }
        }
        if counters.failedChanges > 0 { parts.append("\(Render.count(counters.failedChanges)) changes not committed") }
        if counters.damagedBodies > 0 {
            parts.append(Render.count(counters.damagedBodies, "damaged body", "damaged bodies"))
        }
        return parts.isEmpty ? "none" : parts.joined(separator: ", ")
    }
}
