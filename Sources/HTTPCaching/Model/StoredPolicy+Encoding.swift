/// The encoding of a policy: 64 bytes, numbers with the least significant byte first.
///
/// | offset | type | field |
/// |---|---|---|
/// | 0 | u8 | version, 1 |
/// | 1 | u8 | lifetime source |
/// | 2 | u16 | flags |
/// | 4 | u32 | fingerprint of the options |
/// | 8 | i64 | freshness lifetime, ms |
/// | 16 | i64 | initial age, ms |
/// | 24 | i64 | response time, ms since 1970 |
/// | 32 | i64 | Date, ms since 1970 |
/// | 40 | i64 | Last-Modified, ms since 1970 |
/// | 48 | i64 | stale-while-revalidate, s or -1 |
/// | 56 | i64 | stale-if-error, s or -1 |
extension StoredPolicy {
    /// The length of the encoding.
    public static let encodedByteCount = 64

    /// The encoding.
    public var encoded: [UInt8] {
        var bytes: [UInt8] = [1, lifetimeSource.rawValue]
        bytes.reserveCapacity(Self.encodedByteCount)
        func append<T: FixedWidthInteger>(_ value: T) {
            for shift in stride(from: 0, to: T.bitWidth, by: 8) {
                bytes.append(UInt8(truncatingIfNeeded: value >> T(shift)))
            }
        }
        append(flags.rawValue)
        append(fingerprint)
        for value in [
            lifetimeMilliseconds, initialAgeMilliseconds, responseTime.milliseconds, date.milliseconds,
            lastModified.milliseconds,
            staleWhileRevalidateSeconds, staleIfErrorSeconds,
        ] { append(value) }
        return bytes
    }

    /// Reads an encoding; nil when the length, the version or the lifetime source is unknown. Reads in place, without
    /// allocating.
    public init?(encoded bytes: some RandomAccessCollection<UInt8>) {
        guard bytes.count == Self.encodedByteCount else { return nil }
        let start = bytes.startIndex
        func read<T: FixedWidthInteger>(_ offset: Int, _: T.Type) -> T {
            var value: T = 0
            for index in 0..<(T.bitWidth / 8) {
                value |= T(truncatingIfNeeded: bytes[bytes.index(start, offsetBy: offset + index)]) << T(index * 8)
            }
            return value
        }
        guard read(0, UInt8.self) == 1, let source = LifetimeSource(rawValue: read(1, UInt8.self)) else { return nil }
        lifetimeSource = source
        flags = Flags(rawValue: read(2, UInt16.self))
        fingerprint = read(4, UInt32.self)
        lifetimeMilliseconds = max(0, read(8, Int64.self))
        initialAgeMilliseconds = max(0, read(16, Int64.self))
        responseTime = Instant(milliseconds: read(24, Int64.self))
        date = Instant(milliseconds: read(32, Int64.self))
        lastModified = Instant(milliseconds: read(40, Int64.self))
        staleWhileRevalidateSeconds = max(-1, read(48, Int64.self))
        staleIfErrorSeconds = max(-1, read(56, Int64.self))
    }
}
