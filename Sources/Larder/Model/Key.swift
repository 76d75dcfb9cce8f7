/// The name under which an entry is stored: any bytes, 1 to 65,536 of them. Usually a URL.
///
/// A key is never used as a path. Equality is equality of bytes: no normalisation, so `/a` and `/a/` are two keys.
public struct Key: Hashable, Sendable {
    /// The bytes.
    public let bytes: [UInt8]

    /// The longest key, in bytes.
    package static let maximumLength = 65_536

    /// A key of raw bytes.
    /// - Parameter bytes: 1 to 65,536 of them; calls of a store throw for others.
    public init(bytes: some Sequence<UInt8>) {
        self.bytes = Array(bytes)
    }

    /// The UTF-8 bytes of `string`.
    /// - Parameter string: 1 to 65,536 bytes of UTF-8; calls of a store throw for others.
    public init(_ string: String) {
        bytes = Array(string.utf8)
    }

    /// Feeds all bytes in one call; the array's own implementation makes one call a byte.
    public func hash(into hasher: inout Hasher) {
        bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
    }

    /// True if the key starts with `prefix`.
    /// - Parameter prefix: any bytes; every key starts with the empty one.
    package func hasPrefix(_ prefix: Key) -> Bool {
        bytes.starts(with: prefix.bytes)
    }

    /// Throws `invalidArgument` or `tooLarge` unless the length is in range.
    func validate() throws(LarderError) {
        if bytes.isEmpty {
            throw LarderError(
                .invalidArgument, "the key is empty; a key has 1 to \(Key.maximumLength) bytes", key: self)
        }
        if bytes.count > Key.maximumLength {
            throw LarderError(
                .tooLarge,
                "the key \(self) has \(bytes.count) bytes; a key has 1 to \(Key.maximumLength): store under its digest",
                key: self)
        }
    }
}

extension Key: Comparable {
    /// The order of the bytes, taken as numbers from 0 to 255: that of listings, apart from very long keys.
    public static func < (first: Key, second: Key) -> Bool { first.bytes.lexicographicallyPrecedes(second.bytes) }
}

extension Key: ExpressibleByStringLiteral {
    /// The UTF-8 bytes of a literal.
    /// - Parameter value: 1 to 65,536 bytes of UTF-8.
    public init(stringLiteral value: String) { self.init(value) }
}

extension Key: CustomStringConvertible {
    /// The key as text: UTF-8 where it is valid; control characters, characters that change the direction of text, and
    /// other bytes as `\xNN`; cut after 200 bytes.
    public var description: String { rendered(limit: 200) }

    /// The whole key as text, escaped as in `description`.
    public var text: String { rendered(limit: .max) }

    private func rendered(limit: Int) -> String {
        let shown = bytes.prefix(limit)
        var result = ""
        if let string = String(validating: shown, as: UTF8.self) {
            for scalar in string.unicodeScalars {
                if Self.isSafe(scalar) {
                    result.unicodeScalars.append(scalar)
                } else {
                    for byte in String(scalar).utf8 { result += Self.escape(byte) }
                }
            }
        } else {
            for byte in shown {
                if byte >= 0x20 && byte < 0x7F {
                    result.unicodeScalars.append(Unicode.Scalar(byte))
                } else {
                    result += Self.escape(byte)
                }
            }
        }
        return shown.count < bytes.count ? result + "... (\(bytes.count) bytes)" : result
    }

    /// Whether a terminal shows a character where it stands. Control characters, also those above ASCII, may do
    /// anything; line and paragraph separators begin a line; overrides of direction (U+202E) show other text in another
    /// order.
    private static func isSafe(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x20..<0x7F: true
        case 0x061C, 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069: false
        default: scalar.properties.generalCategory != .control
        }
    }

    private static func escape(_ byte: UInt8) -> String {
        let digits = String(byte, radix: 16)
        return "\\x" + (digits.count < 2 ? "0" : "") + digits
    }
}
