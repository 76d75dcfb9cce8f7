#if LARDER_FAILPOINTS
    import Failpoints
    import Foundation
    import Locks
    import SystemPackage
    import TestSupport
    import Testing

    @testable import Larder

    /// `adopt(method: .move)`: the caller's file goes when its bytes are safe in the store, and never before.
    struct MoveTests {
        /// Every step and call between the opening of a file and the removal of its name.
        static let points = [
            "adopt.named", "adopt.copied", "adopt.committed", "adopt.removed", "stage.settled", "reserve.taken",
            "batch.before-staging-sync", "batch.after-staging-sync", "batch.before-index-sync",
            "batch.after-index-sync", "commit.before-trash", "commit.before", "commit.after", "commit.surplus-dropped",
            "publish.before", "publish.renamed", "link", "unlink", "rename", "fdatasync", "fsync", "mdb_txn_commit",
            "mdb_env_sync",
        ]

        enum Way: String, CaseIterable {
            /// Linked, or read where the body is inline.
            case linked
            /// No link can be made: copied.
            case copied
            /// Copied from another file system, where there is one.
            case elsewhere
        }

        @Test(arguments: [(Way.linked, 1000), (.linked, 600_000), (.copied, 600_000), (.elsewhere, 600_000)])
        func aMoveKilledAtAnyStepKeepsTheBytes(_ way: Way, _ length: Int) throws {
            try withDirectory { path in
                let elsewhere = FilePath("/var/tmp/larder-test-\(UUID().uuidString)")
                defer { unlink(elsewhere.string) }
                let source = way == .elsewhere ? elsewhere : path.appending("source")
                var killed: [String: Int] = [:]
                for point in Self.points {
                    for hit in 1...60 {
                        let store = path.appending("store")
                        TestFiles.remove(store)
                        try Store(at: store, .testing()).close()
                        try TestFiles.write(body(length), to: source)
                        let faults = (way == .copied ? "link=EPERM;" : "") + "\(point)=kill@\(hit)"
                        let worker = try Worker(
                            store: store.string, mode: "move", seed: 0, count: 0,
                            environment: [Failpoints.variable: faults, "LARDER_SOURCE": source.string])
                        let lines = worker.finish()
                        try expectNothingLost(source, store, length, isMoved: lines.contains("MOVED"), faults)
                        if lines.last == "OK" { break }
                        #expect(!lines.contains { $0.hasPrefix("BAD") }, "\(faults): \(lines)")
                        killed[point, default: 0] += 1
                    }
                }
                #expect(killed["adopt.committed"] == 1)
                #expect(killed["adopt.removed"] == 1)
                if length > 256 << 10 { #expect(killed[way == .linked ? "adopt.named" : "adopt.copied"] == 1) }
            }
        }

        private func expectNothingLost(
            _ source: FilePath, _ path: FilePath, _ length: Int, isMoved: Bool, _ faults: String
        ) throws {
            let store = try Store(at: path, .testing())
            let stored = try store.bytes("moved")
            let left = TestFiles.exists(source) ? try TestFiles.read(source) : nil
            #expect(stored != nil || left != nil, "\(faults): the only copy is gone")
            #expect(stored == nil || stored == body(length), "\(faults): wrong bytes in the store")
            #expect(left == nil || left == body(length), "\(faults): wrong bytes under the caller's name")
            if isMoved { #expect(stored != nil && left == nil, "\(faults): not moved") }
            #expect(store.stagedFiles == [], "\(faults)")
            try finish(store)
        }

        @Test(arguments: [1000, 100_000])
        func theFileIsThereUntilTheIndexIsSynced(_ length: Int) throws {
            try withDirectory { path in
                let store = try Store(at: path.appending("store"), .testing())
                let file = path.appending("file")
                try TestFiles.write(body(length), to: file)
                let scope = FaultScope(under: path.string)
                let seen = Mutex<[Bool]>([])
                for step in ["commit.after", "batch.before-index-sync", "mdb_env_sync", "batch.after-index-sync"] {
                    scope.at(step) { seen.withLock { $0.append(TestFiles.exists(file)) } }
                }
                try store.adopt(file, for: "k", PutOptions(durability: .relaxed), method: .move)
                #expect(seen.withLock { $0 } == [true, true, true, true])
                #expect(!TestFiles.exists(file))
                try finish(store)
            }
        }

        @Test(arguments: ["link=EXDEV", "link=EPERM", "link=EOPNOTSUPP"])
        func whereNoLinkCanBeMadeTheFileIsCopied(_ fault: String) throws {
            try withDirectory { path in
                let store = try Store(at: path.appending("store"), .testing())
                let file = path.appending("file")
                try TestFiles.write(body(100_000), to: file)
                let scope = FaultScope(under: path.string, try #require(FaultRule.list(fault)))
                try store.adopt(file, for: "k", method: .move)
                #expect(scope.injected == 1)
                try #expect(store.bytes("k") == body(100_000))
                #expect(!TestFiles.exists(file))
                try finish(store)
            }
        }

        enum Change: CaseIterable { case replaced, writtenTo, removed }

        /// Before the commit, and after it.
        @Test(arguments: Change.allCases, ["pread", "adopt.named", "adopt.committed"])
        func aFileThatChangesMeanwhileIsNotRemoved(_ change: Change, _ moment: String) throws {
            for length in [1000, 100_000] where length > 4096 || moment != "adopt.named" {
                try withDirectory { path in
                    let store = try Store(at: path.appending("store"), .testing())
                    let file = path.appending("file")
                    try TestFiles.write(body(length), to: file)
                    let scope = FaultScope(under: path.string)
                    scope.at(moment) {
                        switch change {
                        case .replaced:
                            let other = path.appending("other")
                            try? TestFiles.write(body(length, 2), to: other)
                            rename(other.string, file.string)
                        case .writtenTo: truncate(file.string, off_t(length / 2))
                        case .removed: unlink(file.string)
                        }
                    }
                    let failure = try code { try store.adopt(file, for: "k", method: .move) }
                    scope.lift()
                    // A body that its owner cuts after the commit is damaged by its owner.
                    if change == .writtenTo, moment == "adopt.committed" {
                        #expect(failure == nil && TestFiles.exists(file))
                        return try store.close()
                    }
                    let stored = try store.bytes("k")
                    switch change {
                    case .replaced:
                        // What was opened is stored, or nothing; what is there now is another's.
                        try #expect(TestFiles.read(file) == body(length, 2))
                        #expect((failure == nil) == (stored == body(length)))
                    case .writtenTo:
                        #expect(TestFiles.exists(file))
                        #expect(failure == .lengthMismatch)
                        #expect(stored == nil)
                    case .removed:
                        #expect((failure == nil) == (stored == body(length)))
                    }
                    #expect(store.stagedFiles == [])
                    try finish(store)
                }
            }
        }

        @Test(arguments: [1000, 100_000])
        func aFileThatCannotBeRemovedIsStoredAndTold(_ length: Int) throws {
            try withDirectory { path in
                let store = try Store(at: path.appending("store"), .testing())
                let file = path.appending("file")
                try TestFiles.write(body(length), to: file)
                let scope = FaultScope(under: file.string, try #require(FaultRule.list("unlink=EACCES")))
                try #expect(code { try store.adopt(file, for: "k", method: .move) } == .io)
                try #expect(TestFiles.read(file) == body(length))
                try #expect(store.bytes("k") == body(length))
                scope.lift()
                // The second time it shares the body: the same file.
                try store.adopt(file, for: "k", method: .move)
                #expect(!TestFiles.exists(file))
                try #expect(store.statistics().fileCount == (length > 4096 ? 1 : 0))
                try finish(store)
            }
        }

        @Test func aCommitThatFailsLeavesTheFile() throws {
            try withDirectory { path in
                let store = try Store(at: path.appending("store"), .testing())
                for length in [1000, 100_000] {
                    let file = path.appending("file\(length)")
                    try TestFiles.write(body(length), to: file)
                    let inode = TestFiles.status(file)?.st_ino
                    for fault in ["mdb_txn_commit=EIO", "mdb_env_sync=EIO", "fdatasync=EIO", "fsync=EIO"] {
                        let scope = FaultScope(under: path.string, try #require(FaultRule.list(fault)))
                        // The body of an inline entry is synced with the index alone.
                        guard try code({ try store.adopt(file, for: "k", method: .move) }) != nil else {
                            #expect(length == 1000 && scope.injected == 0, "\(fault)")
                            try TestFiles.write(body(length), to: file)
                            continue
                        }
                        try #expect(TestFiles.read(file) == body(length), "\(fault)")
                        if scope.injected > 0, length > 1000 { #expect(TestFiles.status(file)?.st_ino == inode) }
                    }
                }
                try finish(store)
            }
        }
    }
#endif
