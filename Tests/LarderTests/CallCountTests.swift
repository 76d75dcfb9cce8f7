#if LARDER_FAILPOINTS
    import Failpoints
    import Larder
    import SystemPackage
    import TestSupport
    import Testing

    /// How often operations call LMDB and the system, pinned in `Effort/calls.txt`: a change that searches a tree once
    /// more for each hit, or stats a file twice, fails here, on any machine.
    ///
    /// Counts are those of 100 operations on 100 keys, the commit that they share included, divided by 100.
    struct CallCountTests {
        private static let count = 100

        private static var configuration: Configuration {
            var configuration = Configuration.testing { $0.embeddingThreshold = 100 }
            // Only a flush commits.
            configuration.commitDelay = .seconds(3600)
            return configuration
        }

        private static func keys(_ name: String) -> [Key] { (0..<count).map { Key("\(name)/\($0)") } }

        /// Bodies by where they end up: part of the record, in the index beside it, a file.
        private static let forms = [("embedded", 50), ("inline", 2000), ("file", 9000)]

        @Test func operationsMakeTheCallsOfTheFile() throws {
            let rows = try withDirectory { directory in
                let path = directory.appending("store")
                let store = try Store(at: path, Self.configuration)
                let rows = try measure(store, FaultScope(under: path.string))
                try finish(store)
                return rows
            }
            var limits = try EffortLimits("calls.txt")
            try limits.compare(EffortCounts(rows))
        }

        private func measure(_ store: Store, _ scope: FaultScope) throws -> [(
            path: String, metric: String, count: Double
        )] {
            var rows: [(path: String, metric: String, count: Double)] = []
            /// Counts what `work` does, with its commit.
            func note(_ name: String, _ work: () throws -> Void) throws {
                try store.flush()
                scope.set([])
                try work()
                // Waits until removed files are gone.
                _ = try store.statistics()
                for (call, hits) in scope.hits.sorted(by: { $0.key < $1.key }) where Self.isCounted(call) {
                    let share = Double(hits) / Double(Self.count)
                    // Less is what the commit itself does.
                    if share >= 0.5 { rows.append((name, call, share)) }
                }
            }
            for (form, length) in Self.forms {
                let keys = Self.keys(form)
                func put(_ version: Int) throws {
                    for (number, key) in keys.enumerated() {
                        try store.put(body(length, number * 10 + version), for: key)
                    }
                    try store.flush()
                }
                try note("put-\(form)") { try put(0) }
                try note("overwrite-\(form)") { try put(1) }
                try note("hit-\(form)") { for key in keys { _ = try store.get(key) } }
                try note("again-\(form)") {
                    for key in keys { _ = try store.get(key) }
                    scope.set([])
                    for key in keys { _ = try store.get(key) }
                }
                try note("touch-\(form)") {
                    for key in keys { _ = try store.get(key) }
                    scope.set([])
                    try store.flush()
                }
                try note("contains-\(form)") { for key in keys { _ = try store.contains(key) } }
                try note("remove-\(form)") {
                    for key in keys { try store.remove(key) }
                    try store.flush()
                }
                try put(2)
                try note("displace-\(form)") { try store.setBudget(Budget(entries: 1)) }
                try store.setBudget(.unlimited)
                try store.clear()
            }
            try note("miss") { for key in Self.keys("miss") { _ = try store.get(key) } }
            return rows
        }

        /// Calls, and not the steps that tests can stop at.
        private static func isCounted(_ name: String) -> Bool {
            FaultTests.systemCalls.contains(name) || name.hasPrefix("mdb_")
        }
    }
#endif
