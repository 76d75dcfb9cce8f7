/// Bytes that are computed when needed: a body of any length takes no memory, and a test can compute which bytes belong
/// at any offset.
///
/// The content repeats a block of 64 KiB of pseudo-random bytes, each time with the number of the block in its first
/// eight bytes (little-endian), so that no two blocks are equal.
public struct GeneratedBytes: Sendable {
    static let blockLength = 65_536

    /// The number of bytes.
    public let count: Int64
    private let block: [UInt8]

    /// Describes `count` bytes; another seed gives other bytes. Default seed: 0.
    /// - Parameters:
    ///   - count: the number of bytes; less than 0 is 0.
    ///   - seed: another one gives other bytes. Default: 0.
    public init(count: Int64, seed: UInt64 = 0) {
        self.count = max(0, count)
        var state = seed
        // splitmix64: https://prng.di.unimi.it/splitmix64.c
        block = [UInt8](unsafeUninitializedCapacity: Self.blockLength) { buffer, initialized in
            for offset in stride(from: 0, to: Self.blockLength, by: 8) {
                state &+= 0x9E37_79B9_7F4A_7C15
                var word = state
                word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
                word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
                word ^= word >> 31
                UnsafeMutableRawBufferPointer(buffer).storeBytes(
                    of: word.littleEndian, toByteOffset: offset, as: UInt64.self)
            }
            initialized = Self.blockLength
        }
    }

    /// The bytes of a range, limited to the content.
    /// - Parameter range: offsets from the start.
    public func bytes(in range: Range<Int64>) -> [UInt8] {
        let range = range.clamped(to: 0..<count)
        var result: [UInt8] = []
        result.reserveCapacity(range.count)
        var offset = range.lowerBound
        while offset < range.upperBound {
            let number = offset / Int64(Self.blockLength)
            let start = Int(offset % Int64(Self.blockLength))
            let end = min(Self.blockLength, start + Int(range.upperBound - offset))
            if start < 8 {
                let stamped = withUnsafeBytes(of: UInt64(number).littleEndian) { Array($0) } + block[8...]
                result += stamped[start..<end]
            } else {
                result += block[start..<end]
            }
            offset += Int64(end - start)
        }
        return result
    }
}
