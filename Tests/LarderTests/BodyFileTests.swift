import Foundation
import SystemPackage
import TestSupport
import Testing

@testable import Larder

/// A body's file that is not what its record says, in a store that does not compare bytes: a miss that the next put
/// heals.
@Suite struct BodyFileTests {
    /// What another program may put in the place of a file.
    enum Change: String, CaseIterable, Sendable {
        case empty, oneByteShort, oneByteLong, directory, link, loop, fifo, socket, unreadable

        /// Returns false if this system or user cannot do it.
        func apply(to file: FilePath, length: Int) throws -> Bool {
            let other = file.removingLastComponent().appending("other")
            switch self {
            case .empty: try TestFiles.truncate(file, to: 0)
            case .oneByteShort: try TestFiles.truncate(file, to: Int64(length) - 1)
            case .oneByteLong: try TestFiles.truncate(file, to: Int64(length) + 1)
            case .directory:
                unlink(file.string)
                #expect(mkdir(file.string, 0o700) == 0)
            case .link:
                // To the right bytes: the store follows no link.
                #expect(rename(file.string, other.string) == 0)
                #expect(symlink(other.string, file.string) == 0)
            case .loop:
                unlink(file.string)
                #expect(symlink(file.string, file.string) == 0)
            case .fifo:
                unlink(file.string)
                #expect(mkfifo(file.string, 0o600) == 0)
            case .socket:
                unlink(file.string)
                #expect(mknod(file.string, S_IFSOCK | 0o600, 0) == 0)
            case .unreadable:
                #expect(chmod(file.string, 0) == 0)
                return geteuid() != 0
            }
            return true
        }
    }

    private let bytes = body(50_000)

    @Test(arguments: Change.allCases) func isAMissThatThePutHeals(_ change: Change) throws {
        try withDirectory { path in
            let damage = IntegrityTests.Damage()
            let store = try Store(at: path, .testing { $0.observer = { damage.note($0) } })
            let digest = Digest.of(bytes)
            try store.put(bytes, for: "k")
            try store.flush()
            if try change.apply(to: store.blobPath(digest), length: bytes.count) {
                try #expect(store.missing(of: [digest]) == [digest])
                try #expect(store.get("k") == nil)
                try #expect(store.get("k") == nil)
                try #expect(store.body(digest: digest) == nil)
                #expect(damage.digests == [digest], "one report for many looks")
            }
            try store.put(bytes, for: "k")
            try #expect(store.bytes("k") == bytes)
            try store.flush()
            try #expect(store.bytes("k") == bytes)
            try #expect(store.missing(of: [digest]) == [])
            // What was found is not a body, so it does not count as one.
            for name in TestFiles.names(in: path.appending("quarantine")) {
                TestFiles.remove(path.appending("quarantine").appending(name))
            }
            TestFiles.remove(store.blobPath(digest).removingLastComponent().appending("other"))
            try store.collect()
            try finish(store)
        }
    }

    /// A put of the same bytes that comes first replaces what is there, without a look at the entry.
    @Test(arguments: Change.allCases) func aPutThatComesFirstHealsIt(_ change: Change) throws {
        try withStore { store in
            try store.put(bytes, for: "k")
            try store.flush()
            let file = store.blobPath(Digest.of(bytes))
            _ = try change.apply(to: file, length: bytes.count)
            try store.put(bytes, for: "same")
            try #expect(store.bytes("same") == bytes)
            try store.flush()
            for key in ["k", "same"] { try #expect(store.bytes(Key(key)) == bytes) }
            TestFiles.remove(file.removingLastComponent().appending("other"))
        }
    }

    /// Lookups of the kind that event loops make, which never wait.
    @Test(arguments: [Change.oneByteShort, .link]) func lookupsThatDoNotWaitLeaveItToOthers(_ change: Change) throws {
        try withStore { store in
            try store.put(bytes, for: "k")
            try store.flush()
            let file = store.blobPath(Digest.of(bytes))
            _ = try change.apply(to: file, length: bytes.count)
            guard case .due = try store.lookUp("k") else {
                Issue.record("not left to another look")
                return
            }
            try #expect(store.get("k") == nil)
            TestFiles.remove(file.removingLastComponent().appending("other"))
            try store.put(bytes, for: "k")
        }
    }

    @Test func manyAtOnceFindTheOthers() throws {
        try withStore { store in
            let others = [body(50_000, 2), body(50_000, 3)]
            for (key, bytes) in zip(["a", "b", "c"], [bytes] + others) { try store.put(bytes, for: Key(key)) }
            try store.flush()
            try TestFiles.truncate(store.blobPath(Digest.of(bytes)), to: 7)
            let found = try store.get(["a", "b", "c"]).map { entry -> [UInt8]? in try entry?.body.bytes() }
            #expect(found == [nil, others[0], others[1]])
        }
    }
}
