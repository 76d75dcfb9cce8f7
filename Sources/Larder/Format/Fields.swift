/// Little-endian fields at fixed offsets of a record. Callers check the length first.
extension UnsafeRawBufferPointer {
    @inline(__always)
    func field<I: FixedWidthInteger & BitwiseCopyable>(_ offset: Int, as type: I.Type = I.self) -> I {
        I(littleEndian: loadUnaligned(fromByteOffset: offset, as: I.self))
    }
}

extension UnsafeMutableRawBufferPointer {
    @inline(__always)
    func setField<I: FixedWidthInteger & BitwiseCopyable>(_ offset: Int, _ value: I) {
        storeBytes(of: value.littleEndian, toByteOffset: offset, as: I.self)
    }
}
