/// SplitMix64: the same numbers for the same seed, on every machine.
public struct SeededGenerator: RandomNumberGenerator, Sendable {
    private var state: UInt64

    /// Starts at `seed`.
    public init(seed: UInt64) { state = seed }

    /// The next number.
    public mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}

/// `length` bytes that no compressor shortens; different seeds give different bodies.
public func body(_ length: Int, _ seed: Int = 0) -> [UInt8] {
    var generator = SeededGenerator(seed: UInt64(bitPattern: Int64(seed)) &* 0x2545_F491_4F6C_DD1D &+ 1)
    return [UInt8](unsafeUninitializedCapacity: length) { buffer, count in
        let raw = UnsafeMutableRawBufferPointer(buffer)
        var at = 0
        while at + 8 <= length {
            raw.storeBytes(of: generator.next(), toByteOffset: at, as: UInt64.self)
            at += 8
        }
        var last = generator.next()
        while at < length {
            raw[at] = UInt8(truncatingIfNeeded: last)
            last >>= 8
            at += 1
        }
        count = length
    }
}
