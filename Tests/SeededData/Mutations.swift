/// Bytes with one to four changes: bits, bytes, numbers at their limits, parts left out and repeated.
public func mutation(of bytes: [UInt8], using generator: inout SeededGenerator) -> [UInt8] {
    var bytes = bytes
    for _ in 0..<Int.random(in: 1...4, using: &generator) {
        let at = Int.random(in: 0...bytes.count, using: &generator)
        switch Int.random(in: 0..<6, using: &generator) {
        case 0 where at < bytes.count: bytes[at] ^= 1 << UInt8.random(in: 0..<8, using: &generator)
        case 1 where at < bytes.count: bytes[at] = UInt8.random(in: 0...255, using: &generator)
        case 2: bytes.insert(UInt8.random(in: 0...255, using: &generator), at: at)
        case 3: bytes.removeLast(bytes.count - at)
        case 4 where at + 8 <= bytes.count:
            let special: [UInt64] = [0, .max, 1 << 63, .max >> 1, 1 << 32, 1 << 48]
            let value = special.randomElement(using: &generator) ?? 0
            withUnsafeBytes(of: value) { for index in 0..<8 { bytes[at + index] = $0[index] } }
        case 5 where !bytes.isEmpty: bytes += bytes.suffix(Int.random(in: 0..<bytes.count, using: &generator))
        default: break
        }
    }
    return bytes
}
