/// Incompressible bodies, all different, made from their index.
///
/// A body is a piece of a pool of random bytes with its own number written over the first 16 bytes. So making one costs
/// a copy, and a body that is read back can be compared with the one that was put.
struct Bodies: Sendable {
    let size: BodySize
    private let seed: UInt64
    private let pool: [UInt8]

    init(_ size: BodySize, seed: UInt64) {
        self.size = size
        self.seed = seed
        var generator = Generator(seed: seed)
        let count = max(4 << 20, size.longest * 2) / 8
        pool = [UInt8](unsafeUninitializedCapacity: count * 8) { buffer, initialized in
            let raw = UnsafeMutableRawBufferPointer(buffer)
            for word in 0..<count { raw.storeBytes(of: generator.next(), toByteOffset: word * 8, as: UInt64.self) }
            initialized = count * 8
        }
    }

    /// The number of bytes of `body(index, version)`.
    func length(_ index: Int, version: Int = 0) -> Int {
        size.length(UInt64(index) &+ UInt64(version) &* 0x1_0000_0001)
    }

    /// Body number `index`; a different `version` gives a different body for the same key.
    func body(_ index: Int, version: Int = 0) -> [UInt8] {
        let length = length(index, version: version)
        let start = Int(Generator.mix(seed ^ UInt64(index) ^ UInt64(version) << 40) % UInt64(pool.count - length))
        return [UInt8](unsafeUninitializedCapacity: length) { buffer, initialized in
            pool.withUnsafeBytes {
                UnsafeMutableRawBufferPointer(buffer).copyMemory(from: .init(rebasing: $0[start..<start + length]))
            }
            var stamp = (UInt64(index), UInt64(version) << 32 | (seed & 0xFFFF_FFFF))
            withUnsafeBytes(of: &stamp) {
                UnsafeMutableRawBufferPointer(buffer).copyMemory(from: .init(rebasing: $0.prefix(length)))
            }
            initialized = length
        }
    }
}
