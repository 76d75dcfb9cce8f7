import Larder
import Synchronization
import SystemPackage

/// A prototype of a store past LMDB, which nothing ships: see decision 135. Bodies lie in segments that are used again
/// (`SegmentLog`), found by two mapped hash tables (`SlotTable`), one of keys and one of digests; `OrderTree` holds the
/// order of the keys. Displacement is by segments; records that a hit touched are copied forward.
///
/// One process writes. Others may read the same files. It has no expiry, no tags, no metadata, no growth of its tables.
final class SegmentsPeer: Peer {
    private struct Writing {
        var survivors: [(key: [UInt8], digest: [UInt8], body: [UInt8])] = []
        var survivingBytes = 0
        var syncedTo: UInt64 = 64
    }

    private let log: SegmentLog
    private let keys: SlotTable
    private let digests: SlotTable
    private let order: OrderTree?
    private let writing = Mutex(Writing())
    /// The log is synced whenever this many bytes of it are new.
    private static let syncedBytes: UInt64 = 16 << 20

    init(_ path: FilePath, _ options: PeerOptions, isOrdered: Bool) throws {
        // Without a budget: room for as many entries as the tables take at 6 slots of 10, of 320 bytes each.
        let budget = options.budgetBytes.map(Int.init)
        let entries = budget.map { $0 / 2048 } ?? options.entries
        let tableBytes = 2 * 64 * (entries / 4 + 64)
        let bytes = budget.map { max(4 << 20, $0 - tableBytes - $0 / 16) } ?? max(64 << 20, entries * 320)
        try FileTree.makeDirectory(path)
        log = try SegmentLog(path.appending("log"), bytes: bytes, allocates: budget != nil)
        keys = try SlotTable(path.appending("keys"), entries: entries)
        digests = try SlotTable(path.appending("digests"), entries: entries)
        order = isOrdered ? try OrderTree(path.appending("order")) : nil
        let checkpoint = log.checkpoint.pointee
        log.forEach(from: checkpoint) { record, place in if log.isIntact(record) { point(to: record, place) } }
        writing.withLock { $0.syncedTo = log.head.pointee }
    }

    func name(_ index: Int) -> Name {
        var name = Name(index)
        name.key = Key(bytes: Name.bytes(index))
        return name
    }

    func get(_ name: Name, _ scratch: Scratch) throws -> Int? {
        name.key.bytes.withUnsafeBytes { key in
            guard let found = find(key), let record = log.record(at: found.place), log.isIntact(record) else {
                return nil
            }
            let count = scratch.take(record.body)
            // What was displaced meanwhile may have been overwritten while it was copied.
            guard found.place >= log.tail.pointee else { return nil }
            SlotTable.touch(found.slot)
            return count
        }
    }

    @inline(__always)
    private func find(_ key: UnsafeRawBufferPointer) -> (slot: UnsafeMutablePointer<UInt64>, place: UInt64)? {
        keys.find(SlotHash.of(key)) { isRecord(at: $0, of: key) }
    }

    @inline(__always)
    private func isRecord(at place: UInt64, of key: UnsafeRawBufferPointer) -> Bool {
        log.record(at: place)?.key.isSame(as: key) ?? false
    }

    private func isStale(_ place: UInt64) -> Bool { place < log.tail.pointee }

    func put(_ body: [UInt8], _ name: Name) throws {
        let digest = Digest.of(body).bytes
        try writing.withLock { writing in
            try append(key: name.key.bytes, digest: digest, body: body, &writing)
            if log.head.pointee - writing.syncedTo > Self.syncedBytes { sync(&writing) }
        }
    }

    func putDurable(_ body: [UInt8], _ name: Name) throws {
        try put(body, name)
        try settle()
    }

    private func append(key: [UInt8], digest: [UInt8], body: [UInt8], _ writing: inout Writing) throws {
        let place = try log.place(for: SegmentLog.Record.size(key.count, body.count)) { survive($0, $1, &writing) }
        guard writing.survivors.isEmpty else {
            let survivors = writing.survivors
            (writing.survivors, writing.survivingBytes) = ([], 0)
            for record in survivors {
                try append(key: record.key, digest: record.digest, body: record.body, &writing)
            }
            return try append(key: key, digest: digest, body: body, &writing)
        }
        key.withUnsafeBytes { key in
            digest.withUnsafeBytes { digest in
                body.withUnsafeBytes { log.append(at: place, key: key, digest: digest, body: $0) }
            }
        }
        if let record = log.record(at: place) { point(to: record, place) }
        order?.note(key, place)
    }

    private func point(to record: SegmentLog.Record, _ place: UInt64) {
        keys.set(SlotHash.of(record.key), to: place, { isRecord(at: $0, of: record.key) }, isStale: isStale)
        digests.set(
            record.digest.loadUnaligned(as: UInt64.self), to: place,
            { log.record(at: $0)?.digest.isSame(as: record.digest) ?? false },
            isStale: isStale)
    }

    /// A record of the segment that goes: it is copied if a hit has touched it, up to half a segment.
    private func survive(_ record: SegmentLog.Record, _ place: UInt64, _ writing: inout Writing) {
        guard let found = find(record.key), found.place == place else { return }
        if SlotTable.isTouched(found.slot), writing.survivingBytes + record.size < log.segmentBytes / 2 {
            writing.survivingBytes += record.size
            writing.survivors.append((Array(record.key), Array(record.digest), Array(record.body)))
        } else {
            SlotTable.void(found.slot)
            order?.note(Array(record.key), 0)
        }
    }

    func remove(_ name: Name) throws {
        name.key.bytes.withUnsafeBytes { key in
            writing.withLock { _ in
                guard let found = find(key) else { return }
                SlotTable.void(found.slot)
                order?.note(name.key.bytes, 0)
            }
        }
    }

    private func sync(_ writing: inout Writing) {
        let head = log.head.pointee
        log.sync(max(writing.syncedTo, log.tail.pointee)..<head)
        writing.syncedTo = head
    }

    func settle() throws {
        try writing.withLock { writing in
            sync(&writing)
            try order?.finish()
        }
    }

    func close() throws {
        try settle()
        keys.sync()
        digests.sync()
        log.checkpoint.pointee = log.head.pointee
        log.sync(log.head.pointee..<log.head.pointee)
    }
}
