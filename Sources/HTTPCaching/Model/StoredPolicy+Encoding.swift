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

    /// Reads an encoding; nil if the length, the version or the lifetime source is unknown.
    ///
    /// - Parameter bytes: the result of ``encoded``.
    public init?(encoded bytes: [UInt8]) {
        // SAFETY: the buffer is read inside the closure only.
        guard let policy = bytes.withUnsafeBytes({ StoredPolicy(encoded: $0) }) else { return nil }
        self = policy
    }

    /// Reads an encoding in place, for instance from a mapping; nil if the length, the version or the lifetime source
    /// is unknown. The buffer is not kept.
    ///
    /// - Parameter bytes: the result of ``encoded``; at any alignment.
    public init?(encoded bytes: UnsafeRawBufferPointer) {
        guard bytes.count == Self.encodedByteCount, bytes[0] == 1, let source = LifetimeSource(rawValue: bytes[1])
        else {
            return nil
        }
        // SAFETY: every offset lies within the 64 bytes checked above; loads need no alignment.
        func number(_ offset: Int) -> Int64 {
            Int64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: Int64.self))
        }
        lifetimeSource = source
        flags = Flags(rawValue: UInt16(littleEndian: bytes.loadUnaligned(fromByteOffset: 2, as: UInt16.self)))
        fingerprint = UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: 4, as: UInt32.self))
        lifetimeMilliseconds = max(0, number(8))
        initialAgeMilliseconds = max(0, number(16))
        responseTime = Instant(milliseconds: number(24))
        date = Instant(milliseconds: number(32))
        lastModified = Instant(milliseconds: number(40))
        staleWhileRevalidateSeconds = max(-1, number(48))
        staleIfErrorSeconds = max(-1, number(56))
    }
}
