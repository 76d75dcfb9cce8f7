#if LARDER_FAILPOINTS
    import Failpoints
    import Locks
    import SystemPackage
    import TestSupport
    import Testing

    @testable import Larder

    /// Calls that last have threads of their own: no piece of a body waits for them.
    @Suite(.serialized)
    struct LongJobTests {
        enum Job: CaseIterable {
            case collection, check, removal, budget, adoption, export, reclaim

            /// A step or call that the job makes, and a chunk read, a spilled write and a put do not.
            var step: String {
                switch self {
                case .collection: "opendir"
                case .check: "opendir"
                case .removal, .budget: "commit.before-trash"
                case .adoption: "adopt.named"
                case .export: "copy_file_range"
                case .reclaim: "reclaim.before"
                }
            }
        }

        @Test(arguments: Job.allCases)
        func piecesOfBodiesDoNotWaitFor(_ job: Job) async throws {
            try await withDirectory { path in
                let gate = Gate()
                var stores: [(store: Store, scope: FaultScope, task: Task<Void, any Error>)] = []
                let quick = try Store(at: path.appending("quick"), .testing())
                try await quick.put(body(100_000), for: "k", PutOptions(durability: .durable))
                for number in 0..<2 {
                    let directory = path.appending("slow\(number)")
                    let (store, scope) = try makeStore(directory, job, gate)
                    stores.append((store, scope, Task { try await run(job, store, directory) }))
                }
                // Both jobs are in the middle.
                await gate.arrival(2)
                // Would a body wait for the two, this never ended.
                try await useABody(quick)
                gate.open()
                for (store, scope, task) in stores {
                    try await task.value
                    scope.lift()
                    try finish(store)
                }
                try finish(quick)
            }
        }

        private func useABody(_ store: Store) async throws {
            let entry = try #require(try await store.get("k"))
            for try await piece in entry.body.chunks() where piece.isEmpty { Issue.record("an empty piece") }
            let writer = try store.writer(for: "w")
            for number in 0..<4 { try await writer.write(body(50_000, number)) }
            try await writer.commit()
            try await store.put(body(50_000, 9), for: "p")
        }

        private func makeStore(_ path: FilePath, _ job: Job, _ gate: Gate) throws -> (Store, FaultScope) {
            let directory = path.appending("store")
            try FileSystem.makeDirectory(path: path)
            let isVersioned = job == .reclaim
            var store = try Store(at: directory, .testing { $0.version = isVersioned ? "1" : nil })
            for number in 0..<4 { try store.put(body(20_000, number), for: Key("k\(number)")) }
            try store.flush()
            let scope = FaultScope(under: path.string)
            if isVersioned {
                try store.close()
                scope.at(job.step) { gate.pass() }
                store = try Store(at: directory, .testing { $0.version = "2" })
            } else {
                scope.at(job.step) { gate.pass() }
            }
            return (store, scope)
        }

        private func run(_ job: Job, _ store: Store, _ path: FilePath) async throws {
            switch job {
            case .collection: _ = try await store.perform { try $0.collect() }
            case .check: _ = try await store.perform { try $0.check() }
            case .removal: _ = try await store.remove(.prefix("k"))
            case .budget: try await store.perform { try $0.setBudget(Budget(entries: 1)) }
            case .adoption:
                try TestFiles.write(body(30_000, 7), to: path.appending("source"))
                _ = try await store.perform { try $0.adopt(path.appending("source"), for: "adopted", method: .link) }
            case .export: _ = try await store.perform { try $0.export("k1", to: path.appending("target")) }
            case .reclaim: break
            }
        }
    }

    /// Where threads are held until it opens.
    final class Gate: Sendable {
        private let opening = Latch()
        private let watching = Mutex((arrivals: 0, latches: [Int: Latch]()))

        /// Waits here until `open()`.
        func pass() {
            watching.withLock { watching in
                watching.arrivals += 1
                for (count, latch) in watching.latches where count <= watching.arrivals { latch.open() }
            }
            opening.block()
        }

        /// Lets all threads through, now and later.
        func open() { opening.open() }

        /// Waits until `count` threads have come here.
        func arrival(_ count: Int = 1) async {
            let latch = watching.withLock { watching in
                let latch = watching.latches[count] ?? Latch()
                watching.latches[count] = latch
                if count <= watching.arrivals { latch.open() }
                return latch
            }
            await latch.wait()
        }
    }
#endif
