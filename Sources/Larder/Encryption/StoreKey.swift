import Crypto
import CryptoExtras
import SystemPackage

/// The file `encryption`: the data key of a store, sealed with the key of its owner. A new owner's key seals it again,
/// and nothing else changes.
///
/// Three lines of text: `larder encryption 1`, `key given` or `key scrypt <rounds> <block size> <parallelism> <salt>`,
/// and `data <sealed key>`. What is sealed is bound to the first two lines.
struct StoreKey {
    private enum Origin: Equatable {
        case given
        case scrypt(rounds: Int, blockSize: Int, parallelism: Int, salt: [UInt8])

        /// OWASP's Password Storage Cheat Sheet for 32 MiB.
        static func fresh() -> Origin {
            .scrypt(rounds: 1 << 15, blockSize: 8, parallelism: 3, salt: SymmetricKey(size: .bits128).bytes)
        }

        var line: String {
            switch self {
            case .given: "key given"
            case .scrypt(let rounds, let blockSize, let parallelism, let salt):
                "key scrypt \(rounds) \(blockSize) \(parallelism) \(salt.hexadecimal)"
            }
        }

        init?(_ line: Substring) {
            let words = line.split(separator: " ", omittingEmptySubsequences: false)
            if words == ["key", "given"] {
                self = .given
                return
            }
            // What they ask for is bounded: 1 GiB of memory, and some three seconds.
            guard words.count == 6, words[..<2] == ["key", "scrypt"], let rounds = Int(words[2]),
                let blockSize = Int(words[3]), let parallelism = Int(words[4]), 2...1 << 20 ~= rounds,
                rounds & (rounds - 1) == 0, 1...32 ~= blockSize, 1...16 ~= parallelism,
                rounds * blockSize * parallelism <= 8 << 20,
                let salt = [UInt8](hexadecimal: String(words[5]), count: 16)
            else { return nil }
            self = .scrypt(rounds: rounds, blockSize: blockSize, parallelism: parallelism, salt: salt)
        }
    }

    private static let magic = "larder encryption 1"
    private static let sealedLength = 12 + 32 + 16
    private static let limit = 512

    private let origin: Origin
    private let sealed: [UInt8]

    private var head: String { "\(Self.magic)\n\(origin.line)\n" }
    var contents: String { "\(head)data \(sealed.hexadecimal)\n" }

    /// Seals a data key.
    init(_ dataKey: SymmetricKey, for key: EncryptionKey) throws {
        if case .passphrase = key.secret { origin = .fresh() } else { origin = .given }
        let head = "\(Self.magic)\n\(origin.line)\n"
        let box = try AES.GCM.seal(
            dataKey.bytes, using: Self.wrapping(key, origin), authenticating: Array(head.utf8))
        sealed = Array(box.nonce) + Array(box.ciphertext) + Array(box.tag)
    }

    init?(_ text: String) {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        guard lines.count == 4, lines[0] == Self.magic, let origin = Origin(lines[1]), lines[2].hasPrefix("data "),
            let sealed = [UInt8](hexadecimal: String(lines[2].dropFirst(5)), count: Self.sealedLength),
            lines[3].isEmpty
        else { return nil }
        self.origin = origin
        self.sealed = sealed
        // There is one way to write it.
        if contents != text { return nil }
    }

    /// The data key; nil if it was sealed with another key, or is damaged.
    private func dataKey(_ key: EncryptionKey) throws -> SymmetricKey? {
        switch (key.secret, origin) {
        case (.key, .given), (.passphrase, .scrypt): break
        default: return nil
        }
        let box = try AES.GCM.SealedBox(combined: sealed)
        let bytes = try? AES.GCM.open(box, using: Self.wrapping(key, origin), authenticating: Array(head.utf8))
        return bytes.map { SymmetricKey(data: $0) }
    }

    /// The key that seals the data key.
    private static func wrapping(_ key: EncryptionKey, _ origin: Origin) throws -> SymmetricKey {
        switch (key.secret, origin) {
        case (.passphrase(let text), .scrypt(let rounds, let blockSize, let parallelism, let salt)):
            return try KDF.Scrypt.deriveKey(
                from: Array(text.utf8), salt: salt, outputByteCount: 32, rounds: rounds, blockSize: blockSize,
                parallelism: parallelism, maxMemory: 2 << 30)
        case (.key(let key), _):
            return HKDF<SHA256>.deriveKey(
                inputKeyMaterial: key, info: Array("larder: seals the data key".utf8), outputByteCount: 32)
        case (.passphrase, .given): preconditionFailure("a passphrase has parameters")
        }
    }
}

extension StoreKey {
    /// The cipher of a store that is opened; nil for one that is not encrypted. Makes the file of a new store, which is
    /// on disk before anything that it seals.
    /// - Parameter isNew: whether the store is being made, and has no `FORMAT` yet.
    /// - Throws: as `open`.
    static func cipher(
        _ configuration: Configuration, _ format: FormatFile, isNew: Bool, in root: Directory
    ) throws -> StoreCipher? {
        if isNew, try FileSystem.status(Layout.data, in: root.directory(Layout.index)) == nil {
            guard let key = configuration.encryption else { return nil }
            let dataKey = SymmetricKey(size: .bits256)
            try replace(StoreKey(dataKey, for: key), in: root)
            return StoreCipher(dataKey)
        }
        return try cipher(configuration.encryption, format, in: root)
    }

    /// The cipher of a store that is there, as its `FORMAT` says what it is.
    static func cipher(_ key: EncryptionKey?, _ format: FormatFile, in root: Directory) throws -> StoreCipher? {
        if format.version == FormatFile.Feature.encryption.rawValue,
            try FileSystem.status(Layout.encryption, in: root) == nil
        {
            throw lost(root)
        }
        return try open(key, in: root)
    }

    /// The cipher of a store; nil for one that is not encrypted.
    /// - Throws: `wrongKey` for another key, none, or one where none is needed; `corruption` for a damaged file.
    static func open(_ key: EncryptionKey?, in root: Directory) throws -> StoreCipher? {
        guard let file = try read(root) else {
            guard key != nil else { return nil }
            throw LarderError(
                .wrongKey,
                "the store at \(root.path) is not encrypted, and a key was given: open it without one, or choose another "
                    + "directory for an encrypted store",
                path: root.path)
        }
        guard let key else {
            throw LarderError(
                .wrongKey, "the store at \(root.path) is encrypted: it opens with its key only", path: root.path)
        }
        guard let dataKey = try file.dataKey(key) else { throw wrong(root) }
        return StoreCipher(dataKey)
    }

    /// Throws `wrongKey` unless the key opens a store that is open.
    static func require(_ key: EncryptionKey?, of files: StoreFiles) throws {
        let cipher = try open(key, in: files.root)
        switch (cipher, files.cipher) {
        case (nil, nil): return
        case (let cipher?, let known?) where cipher.isSame(as: known): return
        default: throw wrong(files.root)
        }
    }

    /// Seals the data key with another key, which alone opens the store from then on.
    static func change(from old: EncryptionKey, to new: EncryptionKey, in root: Directory) throws {
        guard let file = try read(root) else {
            let bytes = try FileSystem.contents(Layout.format, in: root, limit: 256) ?? []
            let format = try FormatFile(
                contents: String(decoding: bytes, as: UTF8.self), path: root.path(of: Layout.format))
            if format.version == FormatFile.Feature.encryption.rawValue { throw lost(root) }
            throw LarderError(
                .wrongKey, "the store at \(root.path) is not encrypted: it has no key to change", path: root.path)
        }
        guard let dataKey = try file.dataKey(old) else { throw wrong(root) }
        try replace(StoreKey(dataKey, for: new), in: root)
    }

    private static func wrong(_ root: Directory) -> LarderError {
        LarderError(
            .wrongKey,
            "this is not the key of the encrypted store at \(root.path), or the file \(Layout.encryption) in it is damaged",
            path: root.path)
    }

    static func lost(_ root: Directory) -> LarderError {
        let path = root.path(of: Layout.encryption)
        return LarderError(
            .corruption,
            "\(path), which has the sealed key of the store, is gone: put a copy of it back; without it nothing in the "
                + "store can be read",
            path: path)
    }

    private static func read(_ root: Directory) throws -> StoreKey? {
        guard let status = try FileSystem.status(Layout.encryption, in: root) else { return nil }
        let bytes =
            status.isRegular ? try FileSystem.contents(Layout.encryption, in: root, limit: limit) ?? [] : []
        let text = String(decoding: bytes, as: UTF8.self)
        guard let file = StoreKey(text) else {
            let path = root.path(of: Layout.encryption)
            let words = text.prefix { $0 != "\n" }.split(separator: " ")
            if words.count == 3, words[..<2] == ["larder", "encryption"], Int(words[2]).map({ $0 > 1 }) ?? false {
                throw LarderError(
                    .formatMismatch,
                    "\(path) is of a version that this version of Larder does not know: upgrade Larder; nothing was changed",
                    path: path)
            }
            throw LarderError(
                .corruption,
                "\(path), which has the sealed key of the store, is damaged: put a copy of it back; without it nothing in "
                    + "the store can be read",
                path: path)
        }
        return file
    }

    private static func replace(_ file: StoreKey, in root: Directory) throws {
        var isReplaced = false
        // It would have the data key, sealed with a key that does not open the store.
        defer { if !isReplaced { _ = try? FileSystem.unlink(Layout.newEncryption, in: root) } }
        let path = root.path(of: Layout.newEncryption)
        let new = try FileSystem.open(Layout.newEncryption, in: root, flags: O_WRONLY | O_CREAT | O_TRUNC)
        try FileSystem.write(new, Array(file.contents.utf8), at: 0, path: path)
        try Sync.data(new, path: path)
        try FileSystem.rename(Layout.newEncryption, in: root, to: Layout.encryption, in: root)
        isReplaced = true
        try Sync.names(root)
    }
}

extension SymmetricKey {
    var bytes: [UInt8] { withUnsafeBytes { Array($0) } }
}
