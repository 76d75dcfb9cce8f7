import SystemPackage
import TestSupport
import Testing

@testable import Larder

/// A process that is being killed has lost LMDB's writer lock and still holds the one on its instance: its removal is
/// undone, its file lies in `trash/`, and it looks alive.
struct DyingProcessTests {
    enum Finder: CaseIterable {
        case collect, get, repair
    }

    /// Power loss during creation: LMDB's first pages were not on disk yet, and `FORMAT` is not there.
    @Test(arguments: [[], [0x33], [UInt8](repeating: 0, count: 8192), [UInt8](repeating: 7, count: 5000)])
    func indexOfAnInterruptedCreationIsMadeAnew(_ bytes: [UInt8]) throws {
        try withDirectory { path in
            try Store(at: path, .testing()).close()
            for name in ["FORMAT", "index/ledger"] { try #require(unlink(path.appending(name).string) == 0) }
            try TestFiles.write(bytes, to: path.appending("index").appending("data.mdb"))
            let store = try Store(at: path, .testing())
            try store.put(body(9000), for: "k")
            try finish(store)
        }
    }

    /// Power loss may leave anything in the ledger, which is written through a mapping.
    @Test func ledgerFullOfStoresThatAreNoMoreIsTakenOver() throws {
        try withDirectory { path in
            try Store(at: path, .testing()).close()
            var words = [UInt64](repeating: 0, count: 512)
            words[0] = 0x4C61_7264_6572_4C31
            for slot in 0..<254 { words[2 + slot * 2] = slot == 0 ? 1 : 1000 + UInt64(slot) }
            let file = path.appending("index").appending("ledger")
            try TestFiles.write(words.withUnsafeBytes { Array($0) }, to: file)
            let store = try Store(at: path, .testing())
            try store.put(body(9000), for: "k")
            let second = try Store(at: path, .testing())
            try second.close()
            try finish(store)
        }
    }

    @Test(arguments: Finder.allCases)
    func fileOfARemovalThatWasNotCommittedGoesBack(_ finder: Finder) throws {
        try withStore { store in
            try store.put(body(9000), for: "k", PutOptions(durability: .durable))
            let token = StagingToken(instance: 77, sequence: 1)
            let digest = Digest.of(body(9000))
            let trash = store.path.appending("trash").appending(Layout.trash(token, digest))
            let staging = try Directory(path: store.path.appending("staging"))
            let lock = try FileSystem.open(Layout.instanceLock(77), in: staging, flags: O_RDWR | O_CREAT)
            try #require(try FileSystem.lock(lock, wait: false, path: nil))
            try #require(rename(store.blobPath(digest).string, trash.string) == 0)
            switch finder {
            case .collect: #expect(try store.collect().danglingEntries == 0)
            case .get: _ = try store.get("k")
            case .repair: _ = try store.check(repair: true)
            }
            #expect(try store.bytes("k") == body(9000))
            #expect(!TestFiles.exists(trash))
            _ = lock
        }
    }
}
