import CLarder
import LMDB
import Locks

/// Where the values of keys that were hit lately lie.
///
/// A lookup descends a tree, or two where the body is not part of the record, and what it costs is mostly cache misses:
/// pages, and the keys that the search compares. In one snapshot the values of a key stay where they are, so a second
/// hit needs none of that. A line counts in the snapshot it was filled in (`mdb_txn_id`). Where commits follow each
/// other, what is short is copied, and counts until a commit changes it: `OwnCommits`. A commit of another process
/// makes all lines void.
///
/// One cache for each pooled reader slot, used only by the thread that holds the slot: no lock. 32 bytes a line, none
/// before the first lookup, then 128, 65,536 at most; copies as `CopyMemory` has room.
final class LookupCache: @unchecked Sendable {
    // SAFETY: touched only by the holder of a reader slot of the environment, one at a time. A pointer of a line leads
    // to a block of the line's own, or is followed only inside a transaction on the snapshot that the line names: its
    // pages are not reused while it is the latest, and when the map moves, all lines go before another transaction
    // begins (`Environment.whenMapMoves`). A line is filled again only by a later lookup in the same slot.
    private struct Line {
        var snapshot: UInt64 = 0
        var entry: UnsafeRawPointer?
        var blob: UnsafeRawPointer?
        var blobLength: UInt32 = 0
        var entryLength: UInt16 = 0
        /// The length of the index key, and flags above it.
        var keyField: UInt16 = 0

        static let isCopied: UInt16 = 1 << 15
        static let isBlobCopied: UInt16 = 1 << 14
        static let keyMask: UInt16 = isBlobCopied - 1

        @inline(__always) var keyLength: Int { Int(keyField & Self.keyMask) }
        @inline(__always) var isCopied: Bool { keyField & Self.isCopied != 0 }

        /// True if the line has this key. Only in a transaction on the line's snapshot, or if it is copied.
        @inline(__always)
        func isOf(_ key: UnsafeRawBufferPointer) -> Bool {
            guard keyLength == key.count, let entry, let bytes = key.baseAddress else { return false }
            // The caller reads the blob next: both pages are fetched at once.
            clarder_prefetch(blob)
            // LMDB keeps a node's value right behind its key, and so does a copy.
            return memcmp(entry - key.count, bytes, key.count) == 0
        }

        /// The index key; as above.
        var key: UnsafeRawBufferPointer {
            UnsafeRawBufferPointer(start: entry.map { $0 - keyLength }, count: keyLength)
        }

        @inline(__always)
        var values: Values {
            Values(
                entry: UnsafeRawBufferPointer(start: entry, count: Int(entryLength)),
                blob: UnsafeRawBufferPointer(start: blob, count: Int(blobLength)))
        }
    }

    /// Values of a key, valid in the transaction they were asked for in.
    struct Values {
        let entry: UnsafeRawBufferPointer
        /// Empty where the body is embedded.
        let blob: UnsafeRawBufferPointer
    }

    /// What a line knows.
    enum Found {
        case values(Values)
        /// The entry; its blob has to be looked up, and `renew` told.
        case entry(UnsafeRawBufferPointer)
    }

    private static let limit = 1 << 16
    private let commits: OwnCommits
    private let memory: CopyMemory
    private var lines = UnsafeMutableBufferPointer<Line>(start: nil, count: 0)
    /// Lines of the current snapshot that another key took.
    private var conflicts = 0
    /// Falls with each lookup that finds nothing, and rises eight times as much with one that does: positive where at
    /// least one in nine does. What was won lasts for as many misses as there are lines, so that a commit, which makes
    /// lines void, does not end it.
    private var worth = unproven
    /// What a cache begins with. Only one that is worth more copies what it finds.
    private static let unproven = 1 << 12
    /// Lookups, as far as it takes to choose one of sixteen.
    private var lookups: UInt8 = 0

    init(_ commits: OwnCommits, _ memory: CopyMemory) {
        self.commits = commits
        self.memory = memory
    }

    deinit {
        clear()
        lines.deallocate()
    }

    /// Forgets all lines. Only while no transaction uses the slot.
    func clear() {
        for position in lines.indices { release(&lines[position]) }
    }

    private static func allocate(_ count: Int) -> UnsafeMutableBufferPointer<Line> {
        let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: count * MemoryLayout<Line>.stride, alignment: 64)
        let lines = bytes.bindMemory(to: Line.self)
        lines.initialize(repeating: Line())
        return lines
    }

    /// The values of the entry under `key` and of its blob in `snapshot`, as far as they are known.
    @inline(__always)
    func find(_ key: UnsafeRawBufferPointer, _ hash: UInt64, in snapshot: UInt64) -> Found? {
        if lines.isEmpty { lines = Self.allocate(1 << 7) }
        let first = pair(hash)
        for position in first...(first + 1) {
            if lines[position].snapshot == snapshot {
                if lines[position].isOf(key) {
                    worth = min(worth &+ 8, Self.limit)
                    return .values(lines[position].values)
                }
            } else if lines[position].isCopied, let found = findCopy(position, key, hash, in: snapshot) {
                worth = min(worth &+ 8, Self.limit)
                return found
            }
        }
        worth = max(worth &- 1, 0)
        return nil
    }

    /// What a copy from an earlier snapshot says in this one.
    private func findCopy(
        _ position: Int, _ key: UnsafeRawBufferPointer, _ hash: UInt64, in snapshot: UInt64
    ) -> Found? {
        let line = lines[position]
        guard line.isOf(key), commits.areAll(from: line.snapshot, to: snapshot),
            commits.isUnchanged(hash, since: line.snapshot)
        else { return nil }
        let values = line.values
        if line.blobLength > 0 {
            guard let blob = EntryView(values.entry)?.blob else { return nil }
            guard line.keyField & Line.isBlobCopied != 0,
                commits.isUnchanged(KeyHash.of(blob), since: line.snapshot)
            else { return .entry(values.entry) }
        }
        lines[position].snapshot = snapshot
        return .values(values)
    }

    /// False for most lookups where keys come in no order out of very many: then lines are not worth what it costs to
    /// fetch them from memory. One in sixteen tells when that changes.
    @inline(__always)
    var isWorthALook: Bool {
        if worth > 0 { return true }
        lookups &+= 1
        return lookups & 15 == 0
    }

    /// Notes where the values of `key` lie in `snapshot`. Copies them where a commit of this process has made a line
    /// void.
    func note(_ key: UnsafeRawBufferPointer, _ hash: UInt64, in snapshot: UInt64, _ values: Values) {
        guard key.count <= Int(Line.keyMask), values.entry.count <= Int(UInt16.max),
            values.blob.count <= Int(UInt32.max)
        else { return }
        var line = Line(
            snapshot: snapshot, entry: values.entry.baseAddress, blob: values.blob.baseAddress,
            blobLength: UInt32(values.blob.count), entryLength: UInt16(values.entry.count),
            keyField: UInt16(key.count))
        // A value on overflow pages of its own has no key before it. (The bytes of the page before are readable.)
        guard line.isOf(key) else { return }
        if lines[pair(hash) + 1].snapshot == snapshot {
            conflicts += 1
            if conflicts > lines.count / 4, lines.count < Self.limit { grow(snapshot) }
        }
        // The younger line first; the older of the two is dropped, or an older copy of the same key.
        let first = pair(hash)
        let isCopyOfUse =
            worth > Self.unproven
            && (first...(first + 1)).contains {
                (1..<snapshot).contains(lines[$0].snapshot) && commits.areAll(from: lines[$0].snapshot, to: snapshot)
            }
        if lines[first].isCopied, lines[first].isOf(key) {
            release(&lines[first])
        } else {
            release(&lines[first + 1])
            lines[first + 1] = lines[first]
        }
        if isCopyOfUse { copy(&line, key, values) }
        lines[first] = line
    }

    /// The blob of an entry that was found alone, in `snapshot`.
    func renew(_ key: UnsafeRawBufferPointer, _ hash: UInt64, in snapshot: UInt64, blob: UnsafeRawBufferPointer) {
        let first = pair(hash)
        for position in first...(first + 1) where lines[position].isCopied && lines[position].isOf(key) {
            guard blob.count <= Int(UInt32.max) else { return }
            if lines[position].keyField & Line.isBlobCopied != 0, blob.count == lines[position].blobLength,
                let own = lines[position].blob
            {
                UnsafeMutableRawBufferPointer(start: UnsafeMutableRawPointer(mutating: own), count: blob.count)
                    .copyMemory(from: blob)
            } else {
                lines[position].blob = blob.baseAddress
                lines[position].blobLength = UInt32(blob.count)
                lines[position].keyField &= ~Line.isBlobCopied
            }
            lines[position].snapshot = snapshot
        }
    }

    // MARK: Copies

    /// Bytes before a copy, for its length.
    private static let header = 8

    /// Gives a line a block of its own: length, key, entry, and the blob where that is short.
    private func copy(_ line: inout Line, _ key: UnsafeRawBufferPointer, _ values: Values) {
        let hasBlob = values.blob.count > 0 && values.blob.count <= CopyMemory.longestBlob
        let count = Self.header + key.count + values.entry.count + (hasBlob ? values.blob.count : 0)
        guard values.entry.count <= CopyMemory.longestEntry, memory.take(count) else { return }
        let block = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 8)
        block.storeBytes(of: UInt64(count), as: UInt64.self)
        var place = Self.header
        func append(_ bytes: UnsafeRawBufferPointer) -> UnsafeRawPointer? {
            defer { place += bytes.count }
            UnsafeMutableRawBufferPointer(rebasing: block[place...]).copyMemory(from: bytes)
            return block.baseAddress.map { UnsafeRawPointer($0 + place) }
        }
        _ = append(key)
        line.entry = append(values.entry)
        line.keyField |= Line.isCopied
        if hasBlob {
            line.blob = append(values.blob)
            line.keyField |= Line.isBlobCopied
        }
    }

    /// Frees the block of a line, and empties it.
    private func release(_ line: inout Line) {
        defer { line = Line() }
        guard line.isCopied, let entry = line.entry else { return }
        let block = UnsafeMutableRawPointer(mutating: entry - line.keyLength - Self.header)
        memory.giveBack(Int(block.load(as: UInt64.self)))
        block.deallocate()
    }

    // MARK: Places

    /// The first of the two lines a key may have: together they fill a cache line of the processor.
    @inline(__always)
    private func pair(_ hash: UInt64) -> Int { Int(truncatingIfNeeded: hash) & (lines.count - 2) }

    /// Eight times the lines; those of `snapshot`, and copies, move over.
    private func grow(_ snapshot: UInt64) {
        let old = lines
        defer { old.deallocate() }
        lines = Self.allocate(old.count * 8)
        conflicts = 0
        for position in old.indices {
            guard old[position].snapshot == snapshot || old[position].isCopied else { continue }
            let first = pair(KeyHash.of(old[position].key))
            release(&lines[first + 1])
            lines[first + 1] = lines[first]
            lines[first] = old[position]
        }
    }
}

/// What the copies in all lookup caches of an open store take: 16 MiB at most.
final class CopyMemory: Sendable {
    static let limit = 16 << 20
    /// Longer records are not copied: their metadata is more than the search for them.
    static let longestEntry = 2048
    /// Longer blobs are looked up again after a commit, which is one search of two.
    static let longestBlob = 2048

    private let taken = Atomic<Int>(0)

    /// False if there is no room for that many bytes.
    func take(_ bytes: Int) -> Bool {
        if taken.load(ordering: .relaxed) + bytes > Self.limit { return false }
        taken.wrappingAdd(bytes, ordering: .relaxed)
        return true
    }

    func giveBack(_ bytes: Int) { taken.wrappingSubtract(bytes, ordering: .relaxed) }
}
