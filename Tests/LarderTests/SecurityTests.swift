import SystemPackage
import TestSupport
import Testing

@testable import Larder

/// Who may read a store, and what it does not let itself be led to; `docs/security.md` has the threat model.
@Suite struct SecurityTests {
    private func modes(_ path: FilePath) -> [String: mode_t] {
        var found: [String: mode_t] = [:]
        func walk(_ directory: FilePath, _ name: String) {
            for child in TestFiles.names(in: directory) {
                let path = directory.appending(child)
                found[name + child] = TestFiles.status(path).map { $0.st_mode & 0o7777 }
                if TestFiles.isDirectory(path) { walk(path, name + child + "/") }
            }
        }
        walk(path, "")
        return found
    }

    /// In a process of its own, as the umask belongs to a process.
    @Test(arguments: [0, 0o022, 0o777])
    func directoriesAre0700AndFiles0600WhateverTheUmask(_ mask: UInt64) throws {
        try withDirectory { path in
            let worker = try Worker(store: path.appending("store/below").string, mode: "umask", seed: mask, count: 1)
            #expect(worker.finish().last == "OK")
            let found = modes(path)
            #expect(found.keys.contains { $0.contains("quarantine/") && $0.utf8.count > 64 })
            #expect(found.keys.contains { $0.contains("staging/") && !$0.hasSuffix(".lock") })
            for (name, mode) in found {
                let isDirectory = TestFiles.isDirectory(path.appending(name))
                #expect(mode == (isDirectory ? 0o700 : 0o600), "\(name) under umask \(mask)")
            }
            try finish(try Store(at: path.appending("store/below"), .testing()))
        }
    }

    @Test(
        arguments: [
            "FORMAT", "index", "blobs", "staging", "trash", "quarantine", "index/data.mdb", "index/lock.mdb",
            "index/ledger",
            "blobs/ab",
        ], [false, true])
    func aLinkInsideTheStoreIsRefused(_ name: String, isReadOnly: Bool) throws {
        try withDirectory { path in
            let root = path.appending("store")
            let store = try Store(at: root, .testing())
            try store.put(body(9000), for: "k")
            try store.close()
            let place = root.appending(name)
            let elsewhere = path.appending("elsewhere")
            try #require(rename(place.string, elsewhere.string) == 0)
            try #require(symlink(elsewhere.string, place.string) == 0)
            let error = Result { try Store(at: root, .testing { $0.isReadOnly = isReadOnly }) }
            switch error {
            case .success: Issue.record("opened through a link at \(name)")
            case .failure(let error as LarderError):
                #expect(error.code == .corruption && error.message.contains("is a symbolic link"), "\(error)")
            case .failure(let error): throw error
            }
            // The fault lifted.
            unlink(place.string)
            try #require(rename(elsewhere.string, place.string) == 0)
            let again = try Store(at: root, .testing())
            try #expect(again.bytes("k") == body(9000))
            try finish(again)
        }
    }

    @Test func aBodyReplacedByALinkIsNotFollowed() throws {
        try withDirectory { path in
            let store = try Store(at: path.appending("store"), .testing())
            try store.put(body(9000), for: "k")
            try store.flush()
            let secret = path.appending("secret")
            try TestFiles.write(body(9000, 2), to: secret)
            let place = store.blobPath(Digest.of(body(9000)))
            TestFiles.remove(place)
            try #require(symlink(secret.string, place.string) == 0)
            try #expect(store.get("k") == nil)
            #expect(!TestFiles.exists(place))
            try store.put(body(9000), for: "k")
            try #expect(store.bytes("k") == body(9000))
            try #expect(TestFiles.read(secret) == body(9000, 2))
            try finish(store)
        }
    }

    /// `verify --repair` of a store that is not asked for the body.
    @Test func aCheckRepairsBodiesReplacedByLinks() throws {
        try withDirectory { path in
            let store = try Store(at: path.appending("store"), .testing { $0.inlineThreshold = 1_000 })
            for number in 0..<3 { try store.put(body(9000, number), for: Key("\(number)")) }
            try store.flush()
            let complete = TestFiles.tree(path)
            let writer = try store.partialWriter(for: "part", total: 9000)
            try writer.write(body(4000), at: 0)
            try writer.suspend()
            try store.flush()
            let secret = path.appending("secret")
            try TestFiles.write(body(9000, 7), to: secret)
            var places = [store.blobPath(Digest.of(body(9000, 0)))]
            let added = Set(TestFiles.tree(path)).subtracting(complete).filter { $0.hasPrefix("store/") }
            places += added.map { path.pushing(FilePath($0)) }
            try #require(places.count == 2, "\(added)")
            for place in places {
                TestFiles.remove(place)
                try #require(symlink(secret.string, place.string) == 0)
            }
            let found = try store.check().violations
            #expect(found.filter { $0.message.contains("something else than a file") }.count == 2, "\(found)")
            _ = try store.check(repair: true)
            try #expect(store.get("0") == nil && store.partialBody(of: "part") == nil)
            try #expect(store.bytes("1") == body(9000, 1) && store.bytes("2") == body(9000, 2))
            try #expect(TestFiles.read(secret) == body(9000, 7))
            try finish(store)
        }
    }

    @Test func aDirectoryThatEverybodyMayWriteToIsRefused() throws {
        try withDirectory { path in
            let store = try Store(at: path, .testing())
            try store.put([1], for: "k")
            try store.close()
            chmod(path.string, 0o777)
            for isReadOnly in [false, true] {
                let error = try #require(throws: LarderError.self) {
                    try Store(at: path, .testing { $0.isReadOnly = isReadOnly })
                }
                #expect(error.code == .io && error.message.contains("can be written by every user"))
            }
            try #expect(code { try Store.rebuildIndex(at: path) } == .io)
            chmod(path.string, 0o755)
            try finish(try Store(at: path, .testing()))
        }
    }

    /// As if another user took a predictable name below /tmp. Only root can give a directory away.
    @Test(.enabled(if: geteuid() == 0)) func aDirectoryOfAnotherUserIsRefusedUnlessAllowed() throws {
        try withDirectory { path in
            let store = try Store(at: path, .testing())
            try store.put([1], for: "k")
            try store.close()
            chown(path.string, 65_534, 65_534)
            let error = try #require(throws: LarderError.self) { try Store(at: path, .testing()) }
            #expect(error.code == .io && error.message.contains("belongs to another user (uid 65534)"))
            #expect(error.cause as? Errno == .permissionDenied)
            try #expect(code { try Store.rebuildIndex(at: path) } == .io)
            try finish(try Store(at: path, .testing { $0.allowsOtherOwner = true }))
        }
    }

    @Test func noKeyNamesAFile() throws {
        try withDirectory { path in
            let root = path.appending("store")
            let store = try Store(at: root, .testing())
            let before = TestFiles.tree(root)
            let keys = [
                "../../outside", "/etc/passwd", "..", ".", "a/../../b", "\0", "FORMAT", "index/data.mdb",
                String(repeating: "../", count: 400), "\u{202E}txt", "%2e%2e%2f", "-rf", "*", "a\nb",
            ]
            for (number, key) in keys.enumerated() {
                try store.put(body(100, number), for: Key(key), PutOptions(tags: ["../t", "/"]))
                try store.put(body(9000, number), for: Key(key + "/large"))
            }
            try store.flush()
            for (number, key) in keys.enumerated() {
                try #expect(store.bytes(Key(key)) == body(100, number))
                try #expect(store.bytes(Key(key + "/large")) == body(9000, number))
            }
            #expect(TestFiles.names(in: path) == ["store"])
            let added = TestFiles.tree(root).filter { !before.contains($0) }
            #expect(added.count == keys.count && added.allSatisfy { $0.hasPrefix("blobs/") })
            try finish(store)
        }
    }
}
