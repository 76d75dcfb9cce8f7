import Crypto
import SystemPackage

/// What opens an encrypted store: 32 bytes, or a passphrase that becomes a key slowly. See `Configuration.encryption`.
///
/// Make a key with `random()` and keep it with `save(to:)`: without it nothing in the store can be read.
public struct EncryptionKey: Sendable {
    enum Secret: Sendable {
        case key(SymmetricKey)
        case passphrase(String)
    }

    let secret: Secret

    /// Bytes of a key.
    static let length = 32
    private static let longestFile = 4096

    private init(_ secret: Secret) { self.secret = secret }

    /// A key of 32 random bytes, from the system's generator.
    public static func random() -> EncryptionKey { EncryptionKey(.key(SymmetricKey(size: .bits256))) }

    /// A key of the caller's: bytes that no one can guess, as a generator for keys makes them.
    /// - Parameter bytes: 32 of them.
    /// - Throws: `invalidArgument` for another number.
    public init(bytes: some Sequence<UInt8>) throws(LarderError) {
        let bytes = Array(bytes)
        guard bytes.count == Self.length else {
            throw LarderError(.invalidArgument, "a key has \(Self.length) bytes, and this has \(bytes.count)")
        }
        secret = .key(SymmetricKey(data: bytes))
    }

    /// A key as `save(to:)` writes it, without a line end; nil for anything else.
    /// - Parameter digits: 64 hexadecimal digits of either case.
    public init?(hexadecimal digits: String) {
        guard let bytes = [UInt8](hexadecimal: digits, count: Self.length) else { return nil }
        secret = .key(SymmetricKey(data: bytes))
    }

    /// A passphrase. Each open of a store takes the time to make a key of it: scrypt (RFC 7914) with the parameters in
    /// the store, some 0.2 s and 32 MiB of memory.
    /// - Parameter passphrase: 1 to 1,024 bytes of UTF-8, compared byte by byte.
    /// - Throws: `invalidArgument` for an empty or a longer one.
    public init(passphrase: String) throws(LarderError) {
        guard 1...1024 ~= passphrase.utf8.count else {
            throw LarderError(.invalidArgument, "a passphrase has 1 to 1,024 bytes of UTF-8")
        }
        secret = .passphrase(passphrase)
    }

    /// The key in a file that `save(to:)` wrote, or that has 32 bytes or 64 hexadecimal digits and at most one line
    /// end.
    /// - Parameter path: a regular file, or a link to one, that no one but its owner can read or change.
    /// - Throws: `invalidArgument` for other contents, and for a file that others can use; `io`.
    public init(contentsOf path: some PathConvertible) throws {
        let path = try path.filePath()
        let file = try FileSystem.open(path: path, flags: O_RDONLY | O_NONBLOCK)
        let status = try FileSystem.status(file, path: path)
        guard status.isRegular else {
            throw LarderError(.invalidArgument, "\(path) is not a file with a key", path: path)
        }
        guard status.mode & 0o077 == 0 else {
            throw LarderError(
                .invalidArgument,
                "other users can use the key file \(path): run 'chmod 600' on it",
                path: path)
        }
        var bytes = [UInt8](repeating: 0, count: Self.longestFile)
        let count = try bytes.withUnsafeMutableBytes { try FileSystem.read(file, into: $0, at: 0, path: path) }
        guard let key = Self.key(inFile: bytes[..<count]) else {
            throw LarderError(
                .invalidArgument, "\(path) has no key: 64 hexadecimal digits in a line, or 32 bytes", path: path)
        }
        secret = .key(key)
    }

    private static func key(inFile contents: ArraySlice<UInt8>) -> SymmetricKey? {
        if contents.count == length { return SymmetricKey(data: contents) }
        var digits = contents
        if digits.last == UInt8(ascii: "\n") { digits.removeLast() }
        if digits.last == UInt8(ascii: "\r") { digits.removeLast() }
        return [UInt8](hexadecimal: String(decoding: digits, as: UTF8.self), count: length).map {
            SymmetricKey(data: $0)
        }
    }

    /// Writes the key to a new file that only its owner can use, as 64 hexadecimal digits and a line end, and syncs it.
    /// - Parameter path: a name that is free, in a directory that is there.
    /// - Throws: `io`, also where there is a file of that name; `unsupported` for a passphrase.
    public func save(to path: some PathConvertible) throws {
        let path = try path.filePath()
        guard case .key(let key) = secret else {
            throw LarderError(.unsupported, "a passphrase is not saved: remember it, or save a random key", path: path)
        }
        let file = try FileSystem.open(path: path, flags: O_WRONLY | O_CREAT | O_EXCL, mode: 0o600)
        let text = Array((key.withUnsafeBytes { Array($0) }.hexadecimal + "\n").utf8)
        try FileSystem.write(file, text, at: 0, path: path)
        try Sync.data(file, path: path)
    }
}

/// No part of a key is printed, whatever it is part of.
extension EncryptionKey: CustomStringConvertible, CustomReflectable {
    /// Says that there is a key.
    public var description: String { "EncryptionKey" }
    /// Without parts.
    public var customMirror: Mirror { Mirror(self, children: []) }
}

extension [UInt8] {
    /// Two lower-case digits for each byte.
    var hexadecimal: String { map { Layout.hex(UInt64($0), width: 2) }.joined() }

    /// The bytes that digits of either case stand for; nil if there are others, or not two for each of `count` bytes.
    init?(hexadecimal text: String, count: Int) {
        guard text.utf8.count == 2 * count else { return nil }
        let digits = text.utf8.map { Character(UnicodeScalar($0)).hexDigitValue }
        self = []
        for place in 0..<count {
            guard let high = digits[2 * place], let low = digits[2 * place + 1] else { return nil }
            append(UInt8(high << 4 | low))
        }
    }
}
