import LMDB
import SystemPackage
import TestSupport
import Testing

@testable import Larder

/// The text that people read, pinned. `PATH` stands for the directory of the store.
@Suite struct ErrorMessageTests {
    private func expect(
        _ path: FilePath, _ text: String, sourceLocation: SourceLocation = #_sourceLocation, _ body: () throws -> Void
    ) throws {
        let error = try #require(throws: LarderError.self, sourceLocation: sourceLocation) { try body() }
        let shown = error.description.split(separator: path.string, omittingEmptySubsequences: false).joined(
            separator: "PATH")
        #expect(shown == text, sourceLocation: sourceLocation)
    }

    @Test func refusalsOfArguments() throws {
        try withStore(configuration: .testing(budget: Budget(bytes: .mebibytes(1), largestEntry: .kibibytes(800)))) {
            store in
            let path = store.path
            try expect(path, "invalidArgument: the key is empty; a key has 1 to 65536 bytes") {
                try store.put([1], for: "")
            }
            try expect(
                path,
                "tooLarge: the key \(String(repeating: "k", count: 200))... (65537 bytes) has 65537 bytes; a key has 1 to 65536: store under its digest"
            ) { try store.put([1], for: Key(String(repeating: "k", count: 65_537))) }
            try expect(path, "invalidArgument: 'a\\x00' is not a tag: a tag has 1 to 200 bytes of UTF-8 and no NUL") {
                try store.pin(tag: "a\0")
            }
            try expect(path, "tooLarge: k has 4097 tags of 24582 bytes; the most is 4096 tags and 32768 bytes") {
                try store.put([1], for: "k", PutOptions(tags: (10_000..<14_097).map { "\($0)" }))
            }
            try expect(
                path,
                "tooLarge: the metadata of k has 1048577 bytes; the most is 1048576 (1 MiB): store it as a body of its own"
            ) { try store.put([1], for: "k", PutOptions(metadata: [UInt8](repeating: 0, count: 1_048_577))) }
            try expect(
                path,
                "tooLarge: the body of k has 900 KB (900000 bytes) or more; the largest entry allowed is 819.2 KB (819200 bytes): raise `Budget.largestEntry` (`Store.setBudget(_:)`, `cachectl budget --largest-entry`)"
            ) { try store.put(body(900_000), for: "k") }
            try expect(
                path,
                "tooLarge: the body of k has 800 KB (800000 bytes) or more and does not fit the byte budget of 1 MB (1048576 bytes): raise the budget (`Store.setBudget(_:)`, `cachectl budget`) or store it elsewhere"
            ) { try store.put(body(800_000), for: "k") }
            try expect(
                path,
                "invalidArgument: a budget of 5 bytes is too small: the index alone needs room, so the least is 1048576 bytes (1 MiB)"
            ) { try store.setBudget(Budget(bytes: 5)) }
            try expect(path, "invalidArgument: a budget of 0 entries is too small: the least is 1") {
                try store.setBudget(Budget(entries: 0))
            }
            try expect(path, "invalidArgument: a largest entry of 0 bytes leaves nothing to store: the least is 1") {
                try store.setBudget(Budget(largestEntry: 0))
            }
            try expect(
                path, "invalidArgument: a body cannot be moved out of the store: copy it and remove the entry"
            ) { try store.export("k", to: "/x", method: .move) }
            try expect(path, "invalidArgument: PATH is not a regular file: only those can be adopted") {
                try store.adopt(path, for: "k")
            }
            try expect(path, "io: cannot open PATH/none (No such file or directory)") {
                try store.adopt(path.appending("none"), for: "k")
            }
            try expect(path, "tooLarge: k has 20 bytes, more than half of the memory limit of 10: store it on disk") {
                let memory = MemoryTable(limit: 10, tier: store.engine.tier)
                let put = store.makePut("k", Digest.of([]), 20, .inline(body(20)), PutOptions())
                _ = try memory.reserve(for: put, at: store.engine.clock.now()) { _ in [] }
            }
        }
    }

    @Test func refusalsOfConfigurations() throws {
        func refuse(_ text: String, _ change: (inout Configuration) -> Void) throws {
            try expect("/nowhere", "invalidArgument: " + text) { _ = try Store(at: "/nowhere/store", .testing(change)) }
        }
        try refuse("an inline threshold of 1048577 bytes is too large: the most is 1 MiB") {
            $0.inlineThreshold = 1_048_577
        }
        try refuse("watermarks of 0.9 and 0.5: 0 < low <= high <= 1 is needed") {
            $0.watermarks = .init(high: 0.5, low: 0.9)
        }
        try refuse("an application version has 1 to 200 bytes of UTF-8") { $0.version = "" }
    }

    @Test func bodiesThatAreNotWhatWasDeclared() throws {
        try withStore { store in
            let path = store.path
            let one = "4bf5122f344554c53bde2ebb8cd2b7e3d1600ad631c385a5d7cce23c7785459a"
            let two = "dbc1b4c900ffe48d575b5da5c638040125f65db0fe3e24494b76ea986457d986"
            try expect(
                path,
                "digestMismatch: the body of k has the SHA-256 \(one), not \(two) as declared: fetch it again; nothing was stored"
            ) { try store.put([1], for: "k", digest: Digest.of([2])) }
            try expect(
                path,
                "lengthMismatch: the body of k has 1 bytes, not 2 as declared: it was cut or is another one; nothing was stored"
            ) {
                let writer = try store.writer(for: "k", length: 2)
                try writer.write([1])
                try writer.commit()
            }
            try expect(
                path,
                "lengthMismatch: the body of k has at least 3 bytes, not 2 as declared: it was cut or is another one; nothing was stored"
            ) { try store.writer(for: "k", length: 2).write([1, 2, 3]) }
            try expect(path, "closed: the writer of k was committed or cancelled before") {
                let writer = try store.writer(for: "k")
                writer.cancel()
                try writer.write([1])
            }
        }
    }

    @Test func stateOfTheStore() throws {
        try withDirectory { path in
            let store = try Store(at: path, .testing())
            try store.put([1], for: "k")
            try expect(path, "locked: PATH is open in this process for writing: use that store, or close it first") {
                _ = try Store(at: path, .testing { $0.isReadOnly = true })
            }
            try store.close()
            try expect(path, "closed: the store at PATH was closed") { _ = try store.get("k") }
            let reader = try Store(at: path, .testing { $0.isReadOnly = true })
            try expect(path, "locked: PATH is open in this process read-only: use that store, or close it first") {
                _ = try Store(at: path, .testing())
            }
            try expect(path, "readOnly: the store at PATH was opened read-only") { try reader.remove("k") }
            try reader.close()
        }
        try withStore(configuration: .testing(budget: Budget(entries: 1))) { store in
            try store.put([1], for: "k", PutOptions(isPinned: true, durability: .durable))
            try expect(store.path, "noSpace: the budget of 1 entries is full of pinned and leased ones: unpin some") {
                try store.put([2], for: "l", PutOptions(durability: .durable))
            }
            _ = try? store.flush()
            try store.unpin("k")
        }
        try withStore { store in
            #expect(
                store.engine.context.noRoom().description
                    == "noSpace: no room in \(store.path): what is left is pinned, leased or being written: raise the budget or "
                    + "lower its free-disk floor (`Store.setBudget(_:)`, `cachectl budget`), or unpin entries")
        }
    }

    @Test func directoriesThatAreNoStores() throws {
        try withDirectory { path in
            let readOnly = Configuration.testing { $0.isReadOnly = true }
            let missing = "invalidArgument: there is no store at PATH: check the path, or put something first"
            try expect(path, missing) { _ = try Store(at: path, readOnly) }
            try expect(path.appending("none"), missing) { _ = try Store(at: path.appending("none"), readOnly) }
            let file = path.appending("file")
            try TestFiles.write([1], to: file)
            try expect(file, "invalidArgument: PATH is a file, not a directory: choose another path or remove it") {
                _ = try Store(at: file, .testing())
            }
            try expect(
                path,
                "formatMismatch: PATH is not a Larder store: it holds 'file' and no FORMAT file. Choose an empty or new directory; nothing was changed"
            ) { _ = try Store(at: path, .testing()) }
            try TestFiles.write(Array("x".utf8), to: path.appending("FORMAT"))
            try expect(
                path,
                "formatMismatch: PATH/FORMAT is not the format file of a Larder store: choose another directory. If this is a "
                    + "store whose file was damaged: close the store in every process, then call `Store.rebuildIndex(at:)`, which "
                    + "keeps the entries that can still be read"
            ) { _ = try Store(at: path, .testing()) }
            try TestFiles.write(
                Array("larder\nformat \(FormatFile.newestVersion + 1)\nstore x\n".utf8), to: path.appending("FORMAT"))
            try expect(
                path,
                "formatMismatch: PATH/FORMAT says format 7, newer than format 6 that this version of Larder knows: upgrade Larder, or use another directory; nothing was changed"
            ) { _ = try Store(at: path, .testing()) }
        }
    }

    @Test func damage() throws {
        try withDirectory { path in
            try Store(at: path, .testing()).close()
            let data = path.appending("index/data.mdb")
            let good = try TestFiles.read(data)
            try TestFiles.write([1, 2, 3], to: data)
            let remedy =
                ": close the store in every process, then call `Store.rebuildIndex(at:)`, "
                + "which keeps the entries that can still be read"
            try expect(path, "corruption: the index PATH/index/data.mdb is not an LMDB file" + remedy) {
                _ = try Store(at: path, .testing())
            }
            try TestFiles.write(Array(good[..<12_288]), to: data)
            let error = try #require(throws: LarderError.self) { try Store(at: path, .testing()) }
            #expect(error.message.hasPrefix("the index \(data) is cut short: 12288 bytes of "))
            #expect(error.remedy == .rebuildIndex)
            #expect(error.path == data)
        }
        try withStore { store in
            try store.put(body(9000), for: "k")
            try store.flush()
            let stored = try #require(try store.get("k")).body
            let name = "PATH/blobs/" + Layout.blob(Digest.of(body(9000)))
            try TestFiles.truncate(store.blobPath(Digest.of(body(9000))), to: 100)
            try expect(
                store.path,
                "corruption: the body \(name) ends after 100 of 9000 bytes: call `Store.check(repair: true)`"
            ) { _ = try stored.bytes() }
            try TestFiles.write(body(9000), to: store.blobPath(Digest.of(body(9000))))
        }
    }

    /// What the system and LMDB report, in the store's terms.
    @Test func failuresUnderneath() throws {
        let cases: [(Int32, String)] = [
            (
                ENOSPC,
                "noSpace: no space left to write /f: free some disk space or lower the budget (No space left on device)"
            ),
            (
                EDQUOT,
                "noSpace: no space left to write /f: free some disk space or lower the budget (Disk quota exceeded)"
            ),
            (
                EACCES,
                "io: no permission to write /f: the store must belong to the user who opens it (Permission denied)"
            ),
            (
                EROFS,
                "io: /f lies on a read-only file system: set `Configuration.isReadOnly`, or remount the file system (Read-only file system)"
            ),
            (
                EMFILE,
                "io: no descriptor left to write /f: close some or raise the limit (ulimit -n) (Too many open files)"
            ),
            (
                ELOOP,
                "corruption: /f is a symbolic link, which a store never contains: remove it (Too many levels of symbolic links)"
            ),
            (EIO, "io: cannot write /f (Input/output error)"),
        ]
        for (number, text) in cases { #expect(LarderError.system("write", number, path: "/f").description == text) }
        #expect(LarderError.system("write", EIO, path: nil).message == "cannot write a file of the store")
        try withStore { store in
            let data = "\(store.path)/index/data.mdb"
            let size = try store.engine.index.environment.mapSize()
            if !Sanitizer.isOn { #expect(size == 64 << 30) }
            let failures: [(Int32, String)] = [
                (
                    -30_792,
                    "mapFull: the index \(data) has filled the \(size) bytes of address space it may use in this process: "
                        + "set a lower byte budget, raise 'Configuration.indexMapSize', or close other stores of the process"
                ),
                (
                    -30_785,
                    "mapFull: another process has made the index \(data) longer than the \(size) bytes of address space "
                        + "it has in this one, and it cannot grow now: end long reads under way, close other stores of the "
                        + "process, or raise its limit (ulimit -v)"
                ),
                (-30_790, "readersFull: all reader slots of \(data) are taken: end some of the reads under way"),
                (
                    -30_796,
                    "corruption: the index \(data) is damaged"
                ),
                (ENOSPC, "noSpace: no space left to write \(data): free some disk space or lower the budget"),
                (EIO, "io: cannot read or write the index \(data)"),
            ]
            for (number, text) in failures {
                let error = store.engine.translate(LMDBError(code: number, function: "mdb_get"))
                #expect("\(error.code): \(error.message)" == text)
                #expect(error.cause is LMDBError)
            }
            let closed = store.engine.translate(LMDBError(code: ECANCELED, function: "mdb_env_close"))
            #expect(closed.description == "closed: the store at \(store.path) was closed")
        }
    }
}
