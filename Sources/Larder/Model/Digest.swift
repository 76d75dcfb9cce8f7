import Crypto

/// The SHA-256 of a body: 32 bytes, the body's name in the store.
public struct Digest: Hashable, Sendable {
    private let words: Words

    /// Number of bytes.
    public static let length = 32

    init(copying bytes: UnsafeRawBufferPointer) {
        precondition(bytes.count == Self.length)
        words = bytes.loadUnaligned(as: Words.self)
    }

    /// The digest with these 32 bytes; nil for any other number.
    /// - Parameter bytes: 32 of them.
    public init?(bytes: [UInt8]) {
        guard bytes.count == Self.length else { return nil }
        self = bytes.withUnsafeBytes { Digest(copying: $0) }
    }

    /// The digest written as 64 hexadecimal digits of either case; nil for anything else.
    /// - Parameter text: 64 digits.
    public init?(hexadecimal text: some StringProtocol) {
        // Of one type, so that the compiler knows it: over a generic text the digits take five times as long.
        var text = String(text)
        guard let digest = text.withUTF8({ Digest(digits: UnsafeRawBufferPointer($0)) }) else { return nil }
        self = digest
    }

    private init?(digits: UnsafeRawBufferPointer) {
        guard digits.count == 2 * Self.length else { return nil }
        var bytes = Words()
        let isValid = withUnsafeMutableBytes(of: &bytes) { bytes in
            for index in 0..<Self.length {
                guard let high = Self.value(of: digits[2 * index]), let low = Self.value(of: digits[2 * index + 1])
                else { return false }
                bytes[index] = high << 4 | low
            }
            return true
        }
        guard isValid else { return nil }
        words = bytes
    }

    private static func value(of digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
        default: nil
        }
    }

    /// As `of` for a collection.
    package static func of(_ body: UnsafeRawBufferPointer) -> Digest {
        SHA256.hash(data: body).withUnsafeBytes { Digest(copying: $0) }
    }

    /// The 32 bytes.
    public var bytes: [UInt8] { withBytes { Array($0) } }

    @inline(__always)
    package func withBytes<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R {
        try withUnsafeBytes(of: words, body)
    }

    /// 64 lowercase hexadecimal digits.
    public var hexadecimal: String {
        let digits = Array("0123456789abcdef".utf8)
        return withBytes { bytes in
            String(unsafeUninitializedCapacity: 64) { out in
                for (index, byte) in bytes.enumerated() {
                    out[index * 2] = digits[Int(byte >> 4)]
                    out[index * 2 + 1] = digits[Int(byte & 15)]
                }
                return 64
            }
        }
    }

    /// Four words rather than an array: no allocation, and hashing or comparing one costs nothing.
    private struct Words: Hashable, BitwiseCopyable {
        var first: UInt64 = 0
        var second: UInt64 = 0
        var third: UInt64 = 0
        var fourth: UInt64 = 0

        /// Feeds the first word: the bytes of a cryptographic digest are already spread evenly.
        func hash(into hasher: inout Hasher) { hasher.combine(first) }
    }
}

extension Digest: CustomStringConvertible {
    /// 64 lowercase hexadecimal digits.
    public var description: String { hexadecimal }
}

/// SHA-256 of bytes that arrive in pieces.
package struct IncrementalDigest {
    private var hash = SHA256()

    package init() {}

    package mutating func update(_ bytes: UnsafeRawBufferPointer) { hash.update(bufferPointer: bytes) }

    package func finalize() -> Digest { hash.finalize().withUnsafeBytes { Digest(copying: $0) } }
}
