#if DEBUG
    import Larder
    import Locks
    import Testing

    /// Finds calls that hold a thread of the cooperative pool.
    public enum Watch {
        /// Runs `body` and records an issue for every call that may wait and that is made on a thread which runs a
        /// task.
        public static func expectNone(
            _ store: Store, _ work: String = "the work", also: @escaping @Sendable (String) -> Void = { _ in },
            sourceLocation: SourceLocation = #_sourceLocation, _ body: () async throws -> Void
        ) async throws {
            let calls = Mutex<[String: Int]>([:])
            let scope = store.observeWaits { call in
                also(call)
                // Threads of the engine and of its pools run no task.
                if withUnsafeCurrentTask(body: { $0 != nil }) { calls.withLock { $0[call, default: 0] += 1 } }
            }
            try await body()
            withExtendedLifetime(scope) {}
            let found = calls.withLock { $0 }.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }
            #expect(found == [], "made by tasks in \(work)", sourceLocation: sourceLocation)
        }
    }
#endif
