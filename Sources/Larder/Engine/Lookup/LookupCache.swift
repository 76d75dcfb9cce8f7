import CLarder
import LMDB

/// Where the values of keys that were hit lately lie in the index, as long as the index stays the same.
///
/// A lookup descends a tree, or two where the body is not part of the record, and what it costs is mostly cache misses:
/// pages, and the keys that the search compares.
/// In one snapshot the values of a key stay where they are, so a second hit needs none of that. A line counts only in
/// the snapshot it was filled in (`mdb_txn_id`); any commit, of any process, makes all lines void at once.
///
/// One cache for each pooled reader slot, used only by the thread that holds the slot: no lock. 32 bytes a line, none
/// before the first lookup, then 128, 65,536 at most.
final class LookupCache: @unchecked Sendable {
    // SAFETY: touched only by the holder of a reader slot of the environment, one at a time. The pointers in a line are
    // followed only inside a transaction on the snapshot that the line names: its pages are not reused while it is the
    // latest, and when the map moves, all lines go before another transaction begins (`Environment.whenMapMoves`).
    private struct Line {
        var snapshot: UInt64 = 0
        var entry: UnsafeRawPointer?
        var blob: UnsafeRawPointer?
        var blobLength: UInt32 = 0
        var entryLength: UInt16 = 0
        var keyLength: UInt16 = 0

        @inline(__always)
        func holds(_ key: UnsafeRawBufferPointer, _ snapshot: UInt64) -> Bool {
            guard self.snapshot == snapshot, Int(keyLength) == key.count, let entry, let bytes = key.baseAddress else {
                return false
            }
            // The caller reads the blob next: both pages are fetched at once.
            clarder_prefetch(blob)
            // LMDB keeps a node's value right behind its key.
            return memcmp(entry - key.count, bytes, key.count) == 0
        }

        /// The index key. Only in a transaction on the line's snapshot.
        var key: UnsafeRawBufferPointer {
            UnsafeRawBufferPointer(start: entry.map { $0 - Int(keyLength) }, count: Int(keyLength))
        }

        @inline(__always)
        var values: (entry: UnsafeRawBufferPointer, blob: UnsafeRawBufferPointer) {
            (
                UnsafeRawBufferPointer(start: entry, count: Int(entryLength)),
                UnsafeRawBufferPointer(start: blob, count: Int(blobLength))
            )
        }
    }

    private static let limit = 1 << 16
    private var lines = UnsafeMutableBufferPointer<Line>(start: nil, count: 0)
    /// Lines of the current snapshot that another key took.
    private var conflicts = 0
    /// Falls with each lookup that finds nothing, and rises eight times as much with one that does: positive where at
    /// least one in nine does. What was won lasts for as many misses as there are lines, so that a commit, which makes
    /// all lines void, does not end it.
    private var worth = 1 << 12
    /// Lookups, as far as it takes to choose one of sixteen.
    private var lookups: UInt8 = 0

    deinit { lines.deallocate() }

    /// Forgets all lines. Only while no transaction uses the slot.
    func clear() {
        for position in lines.indices { lines[position] = Line() }
    }

    private static func allocate(_ count: Int) -> UnsafeMutableBufferPointer<Line> {
        let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: count * MemoryLayout<Line>.stride, alignment: 64)
        let lines = bytes.bindMemory(to: Line.self)
        lines.initialize(repeating: Line())
        return lines
    }

    /// The values of the entry under `key` and of its blob in `snapshot`, if they are known. The latter is empty where
    /// the body is embedded.
    @inline(__always)
    func find(
        _ key: UnsafeRawBufferPointer, _ hash: UInt64, in snapshot: UInt64
    ) -> (entry: UnsafeRawBufferPointer, blob: UnsafeRawBufferPointer)? {
        if lines.isEmpty { lines = Self.allocate(1 << 7) }
        let first = pair(hash)
        for position in first...(first + 1) where lines[position].holds(key, snapshot) {
            worth = min(worth &+ 8, Self.limit)
            return lines[position].values
        }
        worth = max(worth &- 1, 0)
        return nil
    }

    /// False for most lookups where keys come in no order out of very many: then lines are not worth what it costs to
    /// fetch them from memory. One in sixteen tells when that changes.
    @inline(__always)
    var isWorthALook: Bool {
        if worth > 0 { return true }
        lookups &+= 1
        return lookups & 15 == 0
    }

    /// Notes where the values of `key` lie in `snapshot`.
    func note(
        _ key: UnsafeRawBufferPointer, _ hash: UInt64, in snapshot: UInt64,
        entry: UnsafeRawBufferPointer, blob: UnsafeRawBufferPointer
    ) {
        guard key.count <= Int(UInt16.max), entry.count <= Int(UInt16.max), blob.count <= Int(UInt32.max) else {
            return
        }
        let line = Line(
            snapshot: snapshot, entry: entry.baseAddress, blob: blob.baseAddress, blobLength: UInt32(blob.count),
            entryLength: UInt16(entry.count), keyLength: UInt16(key.count))
        // A value on overflow pages of its own has no key before it. (The bytes of the page before are readable.)
        guard line.holds(key, snapshot) else { return }
        if lines[pair(hash) + 1].snapshot == snapshot {
            conflicts += 1
            if conflicts > lines.count / 4, lines.count < Self.limit { grow(snapshot) }
        }
        // The younger line first; the older of the two is dropped.
        let first = pair(hash)
        lines[first + 1] = lines[first]
        lines[first] = line
    }

    /// The first of the two lines a key may have: together they fill a cache line of the processor.
    @inline(__always)
    private func pair(_ hash: UInt64) -> Int { Int(truncatingIfNeeded: hash) & (lines.count - 2) }

    /// Eight times the lines; those of `snapshot` move over.
    private func grow(_ snapshot: UInt64) {
        let old = lines
        defer { old.deallocate() }
        lines = Self.allocate(old.count * 8)
        conflicts = 0
        for line in old where line.snapshot == snapshot {
            let hash = Self.hash(line.key)
            lines[pair(hash) + 1] = lines[pair(hash)]
            lines[pair(hash)] = line
        }
    }

    /// A quick hash of a key. Keys that collide on purpose only lose the short cut.
    @inline(__always)
    static func hash(_ key: UnsafeRawBufferPointer) -> UInt64 {
        var hash = UInt64(truncatingIfNeeded: key.count) &* 0x9E37_79B9_7F4A_7C15
        var offset = 0
        while offset + 8 <= key.count {
            hash = mix(hash ^ key.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
            offset += 8
        }
        var rest: UInt64 = 0
        while offset < key.count {
            rest = rest << 8 | UInt64(key[offset])
            offset += 1
        }
        return mix(hash ^ rest)
    }

    @inline(__always)
    private static func mix(_ value: UInt64) -> UInt64 {
        let product = value.multipliedFullWidth(by: 0xD6E8_FEB8_6659_FD93)
        return product.high ^ product.low
    }
}
