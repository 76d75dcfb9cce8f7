/// Little-endian fields at fixed offsets of a record. Callers check the length first.
extension UnsafeRawBufferPointer {
    @inline(__always)
    func field<I: FixedWidthInteger & BitwiseCopyable>(_ offset: Int, as type: I.Type = I.self) -> I {
        I(littleEndian: loadUnaligned(fromByteOffset: offset, as: I.self))
    }
}

extension UInt64 {
    /// A counter or length of the index as a number of bytes that can be added up: a damaged one counts as 2^54 (18
    /// PB).
    var asBytes: Int64 { Int64(Swift.min(self, 1 << 54)) }
}

extension UnsafeMutableRawBufferPointer {
    @inline(__always)
    func setField<I: FixedWidthInteger & BitwiseCopyable>(_ offset: Int, _ value: I) {
        storeBytes(of: value.littleEndian, toByteOffset: offset, as: I.self)
    }
}
