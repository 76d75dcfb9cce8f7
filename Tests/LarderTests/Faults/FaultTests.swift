#if LARDER_FAILPOINTS
    import Failpoints
    import Foundation
    import Larder
    import SystemPackage
    import Testing
    import TestSupport

    /// R3: every call the engine makes fails once, and permanently, at some point of everything a store does. What is
    /// thrown has a type and a fitting code; once the fault is lifted the store works and its invariants hold.
    ///
    /// Models a disk, a quota, a descriptor table or a memory limit that refuses single calls. What LMDB does inside is
    /// not reached from here: its functions fail as wholes.
    struct FaultTests {
        static let systemCalls = [
            "open", "pread", "pwrite", "ftruncate", "rename", "unlink", "mkdir", "fstat", "fstatat", "stat",
            "fallocate",
            "punch", "flock", "opendir", "readdir", "fdatasync", "fsync", "syncfs", "lstat", "link", "clone",
            "copy_file_range", "mmap",
        ]
        static let indexCalls = [
            "mdb_env_open", "mdb_txn_begin.read", "mdb_txn_begin.write", "mdb_txn_renew", "mdb_txn_commit", "mdb_put",
            "mdb_del", "mdb_cursor_del", "mdb_get", "mdb_cursor_get", "mdb_cursor_open", "mdb_stat", "mdb_env_sync",
            "mdb_dbi_open",
            "mdb_dbi_open.create", "mdb_reader_check",
        ]
        static let partial = ["pread", "pwrite", "copy_file_range"]

        static func codes(_ call: String) -> [String] {
            if call == "mdb_txn_begin.read" { return ["EIO", "ENOMEM", "MDB_READERS_FULL"] }
            if call.hasPrefix("mdb") { return ["EIO", "ENOSPC", "ENOMEM", "MDB_MAP_FULL"] }
            return ["EIO", "ENOSPC", "EMFILE", "EACCES", "EROFS", "EINTR"] + (partial.contains(call) ? ["short"] : [])
        }

        /// `LARDER_FAULTS`: how many hits of each call are made to fail with each code, alternately once and
        /// permanently. Without it one hit with one code, chosen by the seed.
        static let tries = Int(ProcessInfo.processInfo.environment["LARDER_FAULTS"] ?? "")
        static let seed =
            UInt64(ProcessInfo.processInfo.environment["LARDER_SEED"] ?? "") ?? UInt64.random(in: 0..<1_000_000)

        @Test(arguments: systemCalls + indexCalls)
        func failingCallDoesNoHarm(_ call: String) throws {
            let total = try Self.hits.get()[call] ?? 0
            try #require(total > 0, "the scenario never calls \(call)")
            var generator = SeededGenerator(seed: Self.seed &+ call.utf8.reduce(0) { $0 &* 31 &+ UInt64($1) })
            let codes = Self.codes(call).shuffled(using: &generator)
            for code in codes.prefix(Self.tries == nil ? 1 : codes.count) {
                for attempt in 0..<(Self.tries ?? 1) {
                    let position = Int.random(in: 1...total, using: &generator)
                    // A call that is interrupted every time never ends.
                    let isLasting = code != "EINTR" && (attempt + Int(generator.next() % 2)) % 2 == 0
                    try fail("\(call)=\(code)@\(position)\(isLasting ? "+" : "")")
                }
            }
        }

        @Test func openingThatFailsLateLeavesNothingBehind() throws {
            try withDirectory { directory in
                // The last call of an open, after the threads have started: asks for the directory's identity.
                let scope = FaultScope(under: directory.string)
                try Store(at: directory.appending("a"), FaultScenario.configuration).close()
                let total = try #require(scope.hits["stat"])
                for position in 1...total {
                    scope.set(try #require(FaultRule.list("stat=EIO@\(position)")))
                    let path = directory.appending("b\(position)")
                    try #expect(code { try Store(at: path, FaultScenario.configuration).close() } == .io)
                    scope.lift()
                    try finish(Store(at: path, FaultScenario.configuration))
                }
            }
        }

        @Test func failuresOfTheIndexHaveATypeWhereverTheyHappen() throws {
            try withDirectory { directory in
                let store = try Store(at: directory, FaultScenario.configuration)
                let scope = FaultScope(under: directory.string)
                try store.put(body(9000), for: "k")
                scope.set(try #require(FaultRule.list("mdb_env_sync=EIO")))
                try #expect(code { try store.checkpoint() } == .io)
                scope.set(try #require(FaultRule.list("mdb_reader_check=ENOMEM")))
                try #expect(code { try store.collect() } == .io)
                scope.lift()
                try finish(store)
            }
        }

        @Test func creationSyncsEveryDirectoryThatGetsNames() throws {
            try withDirectory { directory in
                let scope = FaultScope(under: directory.string)
                let store = try Store(at: directory.appending("store"), FaultScenario.configuration)
                // `blobs/`, the store's directory, `index/`.
                #expect(scope.hits["fsync"] == 3)
                try finish(store)
            }
        }

        @Test func pinningATagThatIsInterruptedLeavesNoEntryBehind() throws {
            try withDirectory { directory in
                let store = try Store(at: directory, FaultScenario.configuration)
                for name in 0..<3 { try store.put(body(9), for: Key("\(name)"), PutOptions(tags: ["t"])) }
                try store.flush()
                let scope = FaultScope(under: directory.string, try #require(FaultRule.list("mdb_txn_commit=EIO@2+")))
                try #expect(code { try store.pin(tag: "t") } == .io)
                scope.lift()
                try verify(store)
                #expect(try store.pinnedTags() == [])
                #expect(try store.pin(tag: "t") == 3)
                try #expect(store.attributes(of: "1")?.isPinned == true)
                try finish(store)
            }
        }

        /// From memory to a file, at the first bytes that are too many for the index.
        @Test func aWriterThatCannotMoveToAFileKeepsWhatItHas() throws {
            try withDirectory { directory in
                let store = try Store(at: directory, FaultScenario.configuration)
                let threshold = Int(FaultScenario.configuration.inlineThreshold.bytes)
                let writer = try store.writer(for: "k")
                try writer.write(body(threshold, 1))
                let scope = FaultScope(under: directory.string, try #require(FaultRule.list("pwrite=ENOSPC@1+")))
                try #expect(code { try writer.write(body(10, 2)) } == .noSpace)
                scope.lift()
                try #expect(writer.bytes(in: 0..<Int64(threshold)) == body(threshold, 1))
                writer.cancel()
                try finish(store)
            }
        }

        /// A disk that others have filled: what was used longest ago gives way, though no budget was set.
        @Test(
            arguments: ["put", "writer", "adopt"], [true, false])
        func aFullDiskDisplaces(_ way: String, _ lacksInodes: Bool) throws {
            let call = way == "adopt" ? "copy_file_range=ENOSPC@1;fallocate=ENOSPC@1;fallocate" : "pwrite"
            // The second open(2) is that of the turn among processes.
            let fault = lacksInodes ? "open=ENOSPC@1;open=ENOSPC@3" : "pwrite=ENOSPC@1;\(call)=ENOSPC@2"
            try withDirectory { directory in
                let store = try Store(at: directory, .testing())
                let bytes = body(400_000, 9)
                let file = try TestFiles.makeDirectory().appending("file")
                defer { TestFiles.remove(file.removingLastComponent()) }
                try TestFiles.write(bytes, to: file)
                for name in 0..<8 { try store.put(body(400_000, name), for: Key("\(name)")) }
                try store.flush()
                let scope = FaultScope(under: directory.string, try #require(FaultRule.list(fault)))
                switch way {
                case "put": try store.put(bytes, for: "new")
                case "adopt": try store.adopt(file, for: "new")
                default:
                    let writer = try store.writer(for: "new")
                    try writer.write(bytes)
                    _ = try writer.commit()
                }
                scope.lift()
                try #expect(store.get("new")?.body.bytes() == bytes)
                // One had to go, and no more than two did; small ones, which give nothing at once, stay.
                let left = try (0..<8).filter { try store.contains(Key("\($0)")) }
                #expect(left.first == 1 || left.first == 2, "\(left)")
                try finish(store)
            }
        }

        /// No page is left for the index, or none for a name in `trash/`: what is removed gives its blocks first.
        @Test(arguments: ["mdb_txn_commit", "rename"]) func aRemovalOnAFullDiskGivesItsFilesFirst(_ call: String) throws
        {
            try withDirectory { directory in
                let store = try Store(at: directory, .testing())
                for name in 0..<3 { try store.put(body(400_000, name), for: Key("\(name)")) }
                try store.flush()
                let scope = FaultScope(under: directory.string, try #require(FaultRule.list("\(call)=ENOSPC@1")))
                try store.remove("0")
                try store.flush()
                #expect(scope.injected == 1)
                try #expect(store.get("0") == nil && store.get("1") != nil)
                // Where not even that helps, the body is lost: a miss, and nothing else.
                scope.set(try #require(FaultRule.list("mdb_txn_commit=ENOSPC@1+")))
                try #expect(code { try store.remove(.keys(["1"])) } == .noSpace)
                scope.lift()
                try #expect(store.get("1") == nil && store.get("2")?.body.bytes() == body(400_000, 2))
                try finish(store)
            }
        }

        /// What could not fit in any case displaces nothing.
        @Test func whatDoesNotFitTheDiskDisplacesNothing() throws {
            try withDirectory { directory in
                let store = try Store(at: directory, .testing())
                for name in 0..<8 { try store.put(body(400_000, name), for: Key("\(name)")) }
                try store.flush()
                let scope = FaultScope(under: directory.string, try #require(FaultRule.list("fallocate=ENOSPC@1+")))
                let writer = try store.writer(for: "new", length: ByteCount(1 << 40))
                try #expect(code { try writer.write(body(400_000, 9)) } == .noSpace)
                scope.lift()
                for name in 0..<8 { try #expect(store.get(Key("\(name)")) != nil) }
                try finish(store)
            }
        }

        /// Whatever else goes, a file does not get longer than it may be.
        @Test func aLimitOfFilesDisplacesNothing() throws {
            try withDirectory { directory in
                let store = try Store(at: directory, .testing())
                for name in 0..<8 { try store.put(body(400_000, name), for: Key("\(name)")) }
                try store.flush()
                let scope = FaultScope(under: directory.string, try #require(FaultRule.list("pwrite=EFBIG@1")))
                let error = #expect(throws: LarderError.self) { try store.put(body(400_000, 9), for: "new") }
                scope.lift()
                #expect(error?.code == .noSpace)
                for name in 0..<8 { try #expect(store.get(Key("\(name)")) != nil) }
                try finish(store)
            }
        }

        @Test func scenarioWithoutFaultsSucceeds() throws {
            try withDirectory { directory in
                let scenario = FaultScenario(directory)
                scenario.run()
                for (step, error) in scenario.errors { Issue.record("\(step): \(error)") }
                let findings = try scenario.findings()
                #expect(findings == [])
            }
        }

        /// How often the scenario makes each call.
        private static let hits = Result {
            try withDirectory { directory in
                let scope = FaultScope(under: directory.string)
                FaultScenario(directory).run()
                return scope.hits
            }
        }

        private func fail(_ rule: String) throws {
            try withDirectory { directory in
                let scope = FaultScope(under: directory.string, try #require(FaultRule.list(rule)))
                let scenario = FaultScenario(directory)
                scenario.run()
                scope.lift()
                for (step, error) in scenario.errors {
                    let code = (error as? LarderError)?.code
                    #expect(
                        code != nil && code != .corruption && code != .invalidArgument && code != .formatMismatch,
                        "\(rule): \(step): \(error)")
                }
                let findings: [String]
                do {
                    findings = try scenario.findings()
                } catch {
                    findings = ["not usable: \(error)"]
                }
                #expect(findings == [], "\(rule), LARDER_SEED=\(Self.seed)")
                if !findings.isEmpty { throw UnsoundStore() }
            }
        }
    }
#endif
