/// Incompressible bytes from a seed: xorshift64*.
struct RandomBytes: RandomNumberGenerator {
    private var state: UInt64

    /// - Parameter seed: the same seed gives the same numbers.
    init(seed: UInt64) { state = seed &* 0x9E37_79B9_7F4A_7C15 | 1 }

    mutating func next() -> UInt64 {
        state ^= state >> 12
        state ^= state << 25
        state ^= state >> 27
        return state &* 0x2545_F491_4F6C_DD1D
    }

    /// 0 ..< 1.
    mutating func fraction() -> Double { Double(next() >> 11) / Double(1 << 53) }

    /// `count` random bytes.
    mutating func bytes(_ count: Int) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            var offset = 0
            while offset < count {
                withUnsafeBytes(of: next()) { word in
                    for byte in word.prefix(count - offset) {
                        buffer[offset] = byte
                        offset += 1
                    }
                }
            }
            initialized = count
        }
    }
}
