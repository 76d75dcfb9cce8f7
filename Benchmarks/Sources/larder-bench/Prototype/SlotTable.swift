import SystemPackage

/// A mapped hash table: 64-bit hashes to places in the log. Rows of 64 bytes hold eight slots; a slot holds 15 bits of
/// the hash, a bit that a hit sets, and the place in units of eight bytes.
///
/// A slot is a hint. The record at its place tells whether it is the one that is looked for, so a slot that is torn,
/// stale or lost is a miss and nothing else. The table does not grow.
struct SlotTable {
    private static let slotsInRow = 8
    /// Rows that a hash may be in, one behind the other.
    private static let reach = 8
    private static let touched: UInt64 = 1 << 48
    private static let tags: UInt64 = ~0 << 49
    private let file: MappedFile
    private let mask: UInt64

    init(_ path: FilePath, entries: Int) throws {
        var rows = 64
        while rows * Self.slotsInRow * 6 / 10 < entries { rows *= 2 }
        file = try MappedFile(path, length: rows * 64, allocates: false)
        mask = UInt64(rows - 1)
    }

    @inline(__always)
    private func slot(_ hash: UInt64, _ step: Int) -> UnsafeMutablePointer<UInt64> {
        let row = Int(((hash & mask) &+ UInt64(step / Self.slotsInRow)) & mask)
        return (file.memory + row * 64 + step % Self.slotsInRow * 8).assumingMemoryBound(to: UInt64.self)
    }

    @inline(__always) private static func place(_ slot: UInt64) -> UInt64 { (slot & (touched - 1)) &* 8 }
    @inline(__always) private static func tag(_ hash: UInt64) -> UInt64 { hash & tags }

    /// The slot whose record `isRight` takes for the one of the hash, with its place.
    @inline(__always)
    func find(_ hash: UInt64, _ isRight: (UInt64) -> Bool) -> (slot: UnsafeMutablePointer<UInt64>, place: UInt64)? {
        for step in 0..<Self.slotsInRow * Self.reach {
            let slot = slot(hash, step)
            let value = slot.pointee
            if value == 0 { return nil }
            if value & Self.tags == Self.tag(hash), isRight(Self.place(value)) { return (slot, Self.place(value)) }
        }
        return nil
    }

    /// Points the hash to `place`: in the slot of the record that it replaces, or in one that is free or stale. Where
    /// all are taken another entry is lost.
    func set(_ hash: UInt64, to place: UInt64, _ isRight: (UInt64) -> Bool, isStale: (UInt64) -> Bool) {
        let value = Self.tag(hash) | place / 8
        var free: UnsafeMutablePointer<UInt64>?
        for step in 0..<Self.slotsInRow * Self.reach {
            let slot = slot(hash, step)
            let old = slot.pointee
            if old == 0 {
                (free ?? slot).pointee = value
                return
            }
            if old & Self.tags == Self.tag(hash), isRight(Self.place(old)) {
                slot.pointee = value
                return
            }
            if free == nil, isStale(Self.place(old)) { free = slot }
        }
        (free ?? slot(hash, 0)).pointee = value
    }

    /// Sets the bit of a hit; writes memory only where it is not set.
    @inline(__always)
    static func touch(_ slot: UnsafeMutablePointer<UInt64>) {
        if slot.pointee & touched == 0 { slot.pointee |= touched }
    }

    static func isTouched(_ slot: UnsafeMutablePointer<UInt64>) -> Bool { slot.pointee & touched != 0 }

    /// The slot points to no record any more. It is not free: others may lie behind it.
    static func void(_ slot: UnsafeMutablePointer<UInt64>) { slot.pointee = slot.pointee & tags | 1 }

    func sync() { file.sync(0..<file.length) }
}

/// A hash of bytes, 64 bits, eight bytes at a time with a multiplication each.
enum SlotHash {
    @inline(__always)
    static func of(_ bytes: UnsafeRawBufferPointer, seed: UInt64 = 0x9E37_79B9_7F4A_7C15) -> UInt64 {
        var hash = seed ^ UInt64(truncatingIfNeeded: bytes.count)
        var offset = 0
        while offset &+ 8 <= bytes.count {
            hash = mix(hash ^ bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
            offset &+= 8
        }
        var rest: UInt64 = 0
        while offset < bytes.count {
            rest = rest << 8 | UInt64(bytes[offset])
            offset &+= 1
        }
        return mix(hash ^ rest)
    }

    @inline(__always)
    private static func mix(_ value: UInt64) -> UInt64 {
        let product = value.multipliedFullWidth(by: 0xD6E8_FEB8_6659_FD93)
        return product.high ^ product.low ^ (value >> 32)
    }
}
