import SystemPackage
import TestSupport
import Testing

@testable import Larder

/// Files that become bodies, and bodies that become files.
@Suite struct TransferTests {
    static let methods: [TransferMethod] = [.copy, .move, .link]

    @Test(arguments: methods, [0, 1000, 100_000, 2 << 20])
    func anAdoptedFileIsTheBody(_ method: TransferMethod, _ length: Int) throws {
        try withDirectory { path in
            let store = try Store(at: path.appending("store"), .testing())
            let file = path.appending("file")
            try TestFiles.write(body(length), to: file)
            let digest = try store.adopt(file, for: "k", PutOptions(tags: ["t"]), method: method)
            #expect(digest == Digest.of(body(length)))
            try #expect(store.bytes("k") == body(length))
            try #expect(store.keys(.tag("t")) == ["k"])
            #expect(TestFiles.exists(file) == (method != .move))
            try verify(store)
            if method == .link, length > 4096 {
                let inode = try #require(TestFiles.status(file)).st_ino
                #expect(TestFiles.status(store.blobPath(digest))?.st_ino == inode)
            }
            try finish(store)
        }
    }

    @Test(arguments: methods, [1000, 100_000])
    func aDigestThatDoesNotMatchLeavesTheFileAndStoresNothing(_ method: TransferMethod, _ length: Int) throws {
        try withDirectory { path in
            let store = try Store(at: path.appending("store"), .testing())
            let file = path.appending("file")
            try TestFiles.write(body(length), to: file)
            try #expect(
                code { try store.adopt(file, for: "k", method: method, digest: Digest.of([1])) } == .digestMismatch)
            try #expect(TestFiles.read(file) == body(length))
            try #expect(store.get("k") == nil)
            #expect(store.stagedFiles == [])
            #expect(store.engine.writing?.ledger.own == 0)
            try store.adopt(file, for: "k", method: method, digest: Digest.of(body(length)))
            try #expect(store.bytes("k") == body(length))
            try finish(store)
        }
    }

    @Test func whatIsNotARegularFileIsRefused() throws {
        try withDirectory { path in
            let store = try Store(at: path.appending("store"), .testing())
            try #expect(code { try store.adopt(path, for: "k") } == .invalidArgument)
            #if os(Linux)
                // proc(5): the system makes these as they are read, and says that they have no bytes.
                try #expect(code { try store.adopt("/proc/self/status", for: "k") } == .lengthMismatch)
            #endif
            try #expect(code { try store.adopt("/dev/null", for: "k") } == .invalidArgument)
            try #expect(code { try store.adopt(path.appending("none"), for: "k") } == .io)
            let pipe = path.appending("pipe")
            #expect(mkfifo(pipe.string, 0o600) == 0)
            try #expect(code { try store.adopt(pipe, for: "k") } == .invalidArgument)
            try finish(store)
        }
    }

    @Test(arguments: [TransferMethod.move, .link])
    func aSymbolicLinkIsFollowedAndItsTargetStays(_ method: TransferMethod) throws {
        try withDirectory { path in
            let store = try Store(at: path.appending("store"), .testing())
            let file = path.appending("file")
            let link = path.appending("link")
            try TestFiles.write(body(100_000), to: file)
            #expect(symlink(file.string, link.string) == 0)
            try store.adopt(link, for: "k", method: method)
            try #expect(store.bytes("k") == body(100_000))
            try store.flush()
            let stored = try #require(TestFiles.status(store.blobPath(Digest.of(body(100_000)))))
            #expect(stored.st_mode & S_IFMT == S_IFREG)
            try finish(store)
        }
    }

    @Test func aFileLargerThanTheLimitsIsRefusedUntouched() throws {
        try withDirectory { path in
            let store = try Store(
                at: path.appending("store"),
                .testing(budget: Budget(bytes: .mebibytes(1), largestEntry: .kibibytes(500))))
            let file = path.appending("file")
            try TestFiles.write(body(600_000), to: file)
            for method in Self.methods {
                try #expect(code { try store.adopt(file, for: "k", method: method) } == .tooLarge)
            }
            try #expect(TestFiles.read(file) == body(600_000))
            #expect(store.stagedFiles == [])
            try finish(store)
        }
    }

    @Test func adoptingTheSameBytesTwiceKeepsOneFile() throws {
        try withDirectory { path in
            let store = try Store(at: path.appending("store"), .testing())
            for number in 0..<3 {
                let file = path.appending("file\(number)")
                try TestFiles.write(body(100_000), to: file)
                try store.adopt(file, for: Key("k\(number)"), method: .move)
                #expect(!TestFiles.exists(file))
            }
            try #expect(store.statistics().fileCount == 1)
            #expect(store.stagedFiles == [])
            try finish(store)
        }
    }

    // MARK: Export

    @Test(arguments: [TransferMethod.copy, .link], [0, 1000, 100_000])
    func anExportedFileIsTheBody(_ method: TransferMethod, _ length: Int) throws {
        try withDirectory { path in
            let store = try Store(at: path.appending("store"), .testing())
            for flushes in [false, true] {
                let file = path.appending("out\(flushes)")
                try store.put(body(length), for: "k")
                if flushes { try store.flush() }
                try #expect(store.export("k", to: file, method: method) == true)
                try #expect(TestFiles.read(file) == body(length))
            }
            try finish(store)
        }
    }

    @Test func anExportOverwritesNothingAndMissesQuietly() throws {
        try withDirectory { path in
            let store = try Store(at: path.appending("store"), .testing())
            let file = path.appending("out")
            try #expect(store.export("none", to: file) == false)
            #expect(!TestFiles.exists(file))
            try TestFiles.write([1], to: file)
            for length in [10, 9000] {
                try store.put(body(length), for: "k")
                for method in [TransferMethod.copy, .link] {
                    try #expect(code { try store.export("k", to: file, method: method) } == .invalidArgument)
                }
            }
            try #expect(code { try store.export("k", to: path.appending("x"), method: .move) } == .invalidArgument)
            try #expect(TestFiles.read(file) == [1])
            try finish(store)
        }
    }

    @Test func theTwinsWithoutAThreadDoTheSame() async throws {
        try await withDirectory { path in
            let store = try Store(at: path.appending("store"), .testing())
            let file = path.appending("file")
            try TestFiles.write(body(100_000), to: file)
            let digest = try await store.perform { try $0.adopt(file, for: "k", method: .move) }
            #expect(digest == Digest.of(body(100_000)))
            let isExported = try await store.perform { try $0.export("k", to: file) }
            #expect(isExported)
            try #expect(TestFiles.read(file) == body(100_000))
            try finish(store)
        }
    }
}
