import SystemPackage
import TestSupport
import Testing

@testable import Larder

/// Keys of encrypted stores: where they come from, what they open, and how they are changed.
@Suite struct EncryptionKeyTests {
    private func open(_ path: FilePath, _ key: EncryptionKey?) throws -> Store {
        try Store(at: path, .testing { $0.encryption = key })
    }

    private func message(_ body: () throws -> some Any) -> String {
        do {
            _ = try body()
            return "no error"
        } catch {
            return "\(error)"
        }
    }

    @Test func onlyItsKeyOpensAStore() throws {
        let key = try Configuration.testKey
        try withDirectory { directory in
            let path = directory.appending("store")
            var store = try open(path, key)
            try store.put([1, 2], for: "k")
            try store.close()
            let before = TestFiles.tree(path)
            #expect(
                message { try open(path, .random()) }.contains("this is not the key of the encrypted store at \(path)"))
            #expect(
                message { try open(path, nil) }.contains(
                    "the store at \(path) is encrypted: it opens with its key only"))
            #expect(message { try open(path, EncryptionKey(passphrase: "a")) }.contains("this is not the key"))
            #expect(TestFiles.tree(path) == before)
            store = try open(path, key)
            try #expect(store.bytes("k") == [1, 2])
            try finish(store)
            // One that is not encrypted takes no key, so that no one believes it is.
            let plain = directory.appending("plain")
            try open(plain, nil).close()
            #expect(message { try open(plain, key) }.contains("is not encrypted, and a key was given"))
            try finish(open(plain, nil))
        }
    }

    @Test func aPassphraseBecomesAKey() throws {
        try withDirectory { path in
            let store = try open(path, EncryptionKey(passphrase: "correct horse"))
            try store.put([1], for: "k")
            try store.close()
            let file = String(decoding: try TestFiles.read(path.appending("encryption")), as: UTF8.self)
            #expect(file.contains("\nkey scrypt 32768 8 3 ") && !file.contains("horse"))
            try #expect(code { try open(path, EncryptionKey(passphrase: "correct Horse")) } == .wrongKey)
            try #expect(code { try open(path, .random()) } == .wrongKey)
            let again = try open(path, EncryptionKey(passphrase: "correct horse"))
            try #expect(again.bytes("k") == [1])
            try finish(again)
        }
        try #expect(code { try EncryptionKey(passphrase: "") } == .invalidArgument)
        try #expect(code { try EncryptionKey(passphrase: String(repeating: "a", count: 1025)) } == .invalidArgument)
    }

    @Test func theKeyIsChanged() throws {
        let (old, new) = (EncryptionKey.random(), try EncryptionKey(passphrase: "new"))
        try withDirectory { path in
            let store = try open(path, old)
            try store.put(body(50_000), for: "k")
            try #expect(code { try Store.changeKey(at: path, from: new, to: old) } == .wrongKey)
            // While it is open.
            try Store.changeKey(at: path, from: old, to: new)
            try #expect(code { try open(path, old) } == .wrongKey)
            let other = try open(path, new)
            try #expect(other.bytes("k") == body(50_000))
            try other.close()
            try store.put(body(50_000, 1), for: "l")
            try store.close()
            try #expect(code { try open(path, old) } == .wrongKey)
            let again = try open(path, new)
            try #expect(again.bytes("k") == body(50_000) && again.bytes("l") == body(50_000, 1))
            try finish(again)
        }
        try withDirectory { path in
            try open(path, nil).close()
            try #expect(code { try Store.changeKey(at: path, from: old, to: new) } == .wrongKey)
            try #expect(
                code { try Store.changeKey(at: path.appending("none"), from: old, to: new) } == .invalidArgument)
        }
    }

    @Test func keysAreKeptInFiles() throws {
        try withDirectory { directory in
            let key = EncryptionKey.random()
            let file = directory.appending("key")
            try key.save(to: file)
            let status = try #require(TestFiles.status(file))
            #expect(status.st_mode & 0o777 == 0o600 && status.st_size == 65)
            try #expect(code { try key.save(to: file) } == .io)
            try open(directory.appending("store"), key).close()
            try open(directory.appending("store"), EncryptionKey(contentsOf: file)).close()
            let text = try TestFiles.read(file)
            let files: [(ArraySlice<UInt8>, Bool)] = [
                (text.dropLast(), true), (ArraySlice(text.dropLast() + Array("\r\n".utf8)), true),
                (ArraySlice(String(decoding: text, as: UTF8.self).uppercased().utf8), true),
                (ArraySlice(0..<32), true), (ArraySlice(0..<31), false), (text.dropLast(2), false),
                (ArraySlice(text + [10]), false), ([], false), (ArraySlice(repeating: 0x67, count: 64), false),
                (ArraySlice(repeating: 0x61, count: 100_000), false),
            ]
            for (contents, isKey) in files {
                let other = directory.appending("other")
                try TestFiles.write(Array(contents), to: other)
                chmod(other.string, 0o600)
                let found = try code { try EncryptionKey(contentsOf: other) }
                #expect(found == (isKey ? nil : .invalidArgument), "\(contents.count) bytes")
                TestFiles.remove(other)
            }
            for mode in [0o640, 0o604, 0o660, 0o601] as [mode_t] {
                chmod(file.string, mode)
                #expect(message { try EncryptionKey(contentsOf: file) }.contains("other users can use"))
            }
            try #expect(code { try EncryptionKey(contentsOf: directory) } == .invalidArgument)
            try #expect(code { try EncryptionKey(contentsOf: directory.appending("none")) } == .io)
            try #expect(code { try EncryptionKey(passphrase: "p").save(to: directory.appending("p")) } == .unsupported)
        }
        try #expect(code { try EncryptionKey(bytes: 0..<31) } == .invalidArgument)
    }

    /// Not in messages, logs or dumps.
    @Test func aKeyIsNotPrinted() throws {
        let key = try EncryptionKey(passphrase: "very secret")
        var text = "\(key) \(String(reflecting: key))"
        dump(key, to: &text)
        var configuration = Configuration()
        configuration.encryption = key
        dump(configuration.encryption, to: &text)
        #expect(!text.contains("secret"))
    }

    /// The file with the sealed key: each bit of it, and each length.
    @Test func aDamagedKeyFileIsSaid() throws {
        let key = try Configuration.testKey
        try withDirectory { path in
            let store = try open(path, key)
            try store.put([1], for: "k")
            try store.close()
            let file = path.appending("encryption")
            let sound = try TestFiles.read(file)
            for place in sound.indices {
                for bit in 0..<8 {
                    var bytes = sound
                    bytes[place] ^= 1 << bit
                    // Digits may have either case.
                    if String(decoding: bytes, as: UTF8.self).lowercased() == String(decoding: sound, as: UTF8.self) {
                        continue
                    }
                    try TestFiles.write(bytes, to: file)
                    let found = try code { try open(path, key) }
                    #expect([.corruption, .wrongKey, .formatMismatch].contains(found), "byte \(place), bit \(bit)")
                }
                try TestFiles.write(Array(sound[..<place]), to: file)
                try #expect(code { try open(path, key) } == .corruption, "\(place) bytes")
            }
            TestFiles.remove(file)
            #expect(message { try open(path, key) }.contains("which has the sealed key of the store, is gone"))
            try #expect(code { try open(path, nil) } == .corruption)
            try #expect(code { try Store.rebuildIndex(at: path) } == .corruption)
            try TestFiles.write(sound, to: file)
            try finish(open(path, key))
        }
    }

    /// What a file asks of scrypt is bounded.
    @Test(arguments: [
        "1073741824 8 1", "1048576 8 16", "+32768 8 3", "032768 8 3", "32768 1024 1", "32768 8 100000", "3 8 1",
        "0 8 1", "-2 8 1", "32768 8",
    ])
    func unreasonableParametersAreRefused(_ parameters: String) throws {
        try withDirectory { path in
            let key = try EncryptionKey(passphrase: "p")
            try open(path, key).close()
            let file = path.appending("encryption")
            let text = String(decoding: try TestFiles.read(file), as: UTF8.self)
            try TestFiles.write(Array(text.replacing("32768 8 3", with: parameters).utf8), to: file)
            try #expect(code { try open(path, key) } == .corruption)
        }
    }
}
