#if DEBUG
    import Locks
    import SystemPackage
    import TestSupport
    import Testing

    @testable import Larder

    /// Every asynchronous form, and calls that `perform` makes: none holds a thread of the cooperative pool, and a
    /// cancelled task gets what the documentation says.
    @Suite struct AsyncSurfaceTests {
        private typealias Call = (name: String, run: @Sendable (Store) async throws -> Void)

        private static let none = Selection.tag("no such tag")

        /// What reads, adds or changes.
        private static var stoppable: [Call] {
            [
                ("get", { _ = try await $0.get("a") }),
                ("put", { try await $0.put(body(10, 1), for: "new") }),
                ("put a file", { try await $0.put(body(9_000, 1), for: "new") }),
                ("put a slice", { try await $0.put(body(10, 1)[2...], for: "new") }),
                ("put without a key", { _ = try await $0.put(body(10, 1)) }),
                ("putByContent", { _ = try await $0.putByContent(body(10, 1)) }),
                (
                    "write",
                    {
                        var batch = WriteBatch()
                        batch.put(body(10, 1), for: "new")
                        try await $0.write(batch)
                    }
                ),
                ("touch", { try await $0.touch("a", lifetime: .duration(.seconds(9))) }),
                ("pin", { try await $0.pin("a") }),
                ("lease", { _ = try await $0.lease("a") }), ("lease a tag", { _ = try await $0.lease(tag: "t") }),
                ("entries", { for try await _ in try $0.entries() {} }),
                ("body", { _ = try await $0.body(digest: Digest.of(body(10))) }),
                ("value", { _ = try await $0.value(for: "new") { _ in Computed(body(10, 1)) } }),
                ("remove a selection", { _ = try await $0.remove(.all) }),
                ("keys", { _ = try await $0.perform { try $0.keys() } }),
                ("forEach", { try await $0.perform { try $0.forEach { _ in } } }),
                ("collect", { _ = try await $0.perform { try $0.collect() } }),
                ("check", { _ = try await $0.perform { try $0.check() } }),
            ]
        }

        /// What ends or undoes something.
        private static var carriedThrough: [Call] {
            [
                ("unpin", { try await $0.unpin("a") }),
                ("unpin a tag", { _ = try await $0.perform { try $0.unpin(tag: "t") } }),
                ("remove a key", { try await $0.remove("a") }),
                ("endSession", { try await $0.perform { try $0.endSession() } }),
                ("flush", { try await $0.perform { try $0.flush(.durable) } }),
                ("clear", { _ = try await $0.perform { try $0.clear() } }),
            ]
        }

        /// What has no asynchronous form of its own, and is short.
        private static var performed: [Call] {
            let digest = Digest.of(body(10))
            return [
                ("get many", { _ = try await $0.perform { try $0.get(["a", "b"]) } }),
                ("pin a tag", { _ = try await $0.perform { try $0.pin(tag: "t") } }),
                ("attributes", { _ = try await $0.perform { try $0.attributes(of: "a") } }),
                ("missing", { _ = try await $0.perform { try $0.missing(of: [digest]) } }),
                ("contains a digest", { _ = try await $0.perform { try $0.contains(digest: digest) } }),
                ("bodies", { _ = try await $0.perform { try $0.bodies(digests: [digest]) } }),
                ("statistics", { _ = try await $0.perform { try $0.statistics() } }),
                ("partialWriter", { _ = try await $0.perform { try $0.partialWriter(for: "new") } }),
                ("partialBody", { _ = try await $0.perform { try $0.partialBody(of: "new") } }),
                ("export", { _ = try await $0.perform { try $0.export("file", to: $0.path.appending("export")) } }),
                ("setBudget", { try await $0.perform { try $0.setBudget(Budget(entries: 1)) } }),
            ]
        }

        private func filled(_ body: (Store) async throws -> Void) async throws {
            try await withStore { store in
                try await store.put(TestSupport.body(10), for: "a", PutOptions(tags: ["t"]))
                try await store.put(TestSupport.body(10, 2), for: "b", PutOptions(storagePolicy: .session))
                try await store.put(TestSupport.body(9_000), for: "file")
                try await store.perform { try $0.flush() }
                try await body(store)
            }
        }

        private func inCancelledTask(_ call: Call, _ store: Store) async throws {
            let task = Task {
                await untilCancelled()
                try await call.run(store)
            }
            task.cancel()
            try await task.value
        }

        @Test func noFormHoldsAThreadOfTheCooperativePool() async throws {
            for call in Self.stoppable + Self.carriedThrough + Self.performed {
                try await filled { store in
                    try await Watch.expectNone(store, call.name) {
                        try await call.run(store)
                        // What was put and not committed yet makes the next call wait.
                        try await store.put(body(20, 3), for: "pending")
                        try? await call.run(store)
                    }
                    _ = unlink(store.path.appending("export").string)
                }
            }
        }

        @Test func inACancelledTaskNothingBegins() async throws {
            try await filled { store in
                let before = try await store.perform { try ($0.statistics(), $0.attributes(of: "a")) }
                for call in Self.stoppable {
                    await #expect(throws: CancellationError.self, "\(call.name)") {
                        try await inCancelledTask(call, store)
                    }
                }
                let after = try await store.perform { try ($0.statistics(), $0.attributes(of: "a")) }
                #expect(before.0.entryCount == after.0.entryCount && before.0.budget == after.0.budget)
                #expect(before.1 == after.1)
                try #expect(store.pinnedTags() == [])
            }
        }

        @Test func whatEndsOrUndoesIsCarriedThrough() async throws {
            try await withDirectory { path in
                let store = try await Store.open(at: path, .testing())
                try await store.put(body(10), for: "a", PutOptions(tags: ["t"], isPinned: true))
                try await store.perform { try $0.pin(tag: "t") }
                for call in Self.carriedThrough { try await inCancelledTask(call, store) }
                try await #expect(store.figures().entryCount == 0)
                try #expect(store.pinnedTags() == [])
                try await inCancelledTask(("close", { try await $0.close() }), store)
                await #expect(throws: LarderError.self) { try await store.get("a") }
            }
        }

        @Test func whatIsPerformedBeginsInACancelledTaskToo() async throws {
            try await filled { store in
                for call in Self.performed where call.name != "export" { try await inCancelledTask(call, store) }
                try #expect(store.budget().entries == 1)
                try #expect(store.pinnedTags() == ["t"])
            }
        }

        @Test func openingAndClosing() async throws {
            try await withDirectory { path in
                let store = try await Store.open(at: path, .testing())
                try await store.put(body(10), for: "a")
                try await store.close()
                let again = try await Store.open(at: path.string, .testing())
                try await #expect(again.get("a")?.body.bytes() == body(10))
                try await again.close()
                let task = Task {
                    await untilCancelled()
                    _ = try await Store.open(at: path, .testing())
                }
                task.cancel()
                await #expect(throws: CancellationError.self) { try await task.value }
                let ephemeral = try await Store.ephemeral(.testing())
                let place = ephemeral.path
                try await ephemeral.close()
                try #expect(FileSystem.status(path: place) == nil)
            }
        }

        @Test func listingSeesWhatWasPutBeforeAndStopsWhereItIsTold() async throws {
            struct Stop: Error {}
            try await withStore { store in
                for number in 0..<600 { try await store.put(body(5, number), for: Key("k\(number)")) }
                var seen = 0
                for try await _ in try store.entries(.prefix("k")) { seen += 1 }
                #expect(seen == 600)
                try await #expect(store.listed(.prefix("k1")).count == 111)
                let visits = Mutex(0)
                await #expect(throws: Stop.self) {
                    try await store.perform {
                        try $0.forEach { _ in
                            let count = visits.withLock { count in
                                count += 1
                                return count
                            }
                            if count == 300 { throw Stop() }
                        }
                    }
                }
                #expect(visits.withLock { $0 } == 300)
            }
        }

        @Test func removingSaysWhetherThereWasAnEntry() async throws {
            try await withStore { store in
                try await store.put(body(5), for: "disk")
                try await store.put(body(5, 2), for: "memory", PutOptions(storagePolicy: .memoryOnly))
                for key in ["disk", "memory"] as [Key] {
                    try await #expect(store.remove(key, durability: .durable))
                    try await #expect(!store.remove(key))
                    try await #expect(store.get(key) == nil)
                }
            }
        }
    }
#endif
