import LMDB

/// Looks bodies in progress up: those that writers of this process or of others write, and those they left. Without
/// state of its own.
final class PartialLookups: EnginePart {
    let context: EngineContext
    private let damage: Damage
    private let touches: TouchBuffer?
    /// Those of this process; nil in a read-only engine.
    private let living: PartialBodies?

    init(context: EngineContext, damage: Damage, touches: TouchBuffer?, living: PartialBodies?) {
        self.context = context
        self.damage = damage
        self.touches = touches
        self.living = living
    }

    /// What the index says of a body in progress.
    struct Found {
        let record: EntryRecord
        let head: BlobRecord
        let progress: EntryRecord.Progress
        let isBeingWritten: Bool
        /// Its writer, if that is in this process.
        let work: PartialWork?
    }

    /// The result of a lookup.
    enum Lookup {
        case hit(Found, BodyFile)
        /// There is none, or its bytes are lost, or may be.
        case miss
        /// Its file is not in its place: only a lookup that may wait can tell why.
        case due
    }

    /// The body in progress under a key, with its file.
    func find(_ key: Key, _ version: UInt16?, mayWait: Bool) throws -> Lookup {
        for _ in 0..<3 {
            guard let found = try look(key, version) else { return .miss }
            guard let file = try files.openBlob(found.head) else {
                if !mayWait { return .due }
                // Removed since, or about to be; or lost.
                try damage.reportVanished(found.record.blob, found.head)
                continue
            }
            let size = try FileSystem.status(file, path: nil).size
            // A writer of this process has more than the file.
            if let work = found.work, let content = work.content, content.seal != nil { return noted(found, content) }
            guard size >= files.leastFileLength(found.progress.ranges.end),
                let content = try? files.bodyFile(file, found.head)
            else { return .miss }
            return noted(found, content)
        }
        return .miss
    }

    /// Counts as a use.
    private func noted(_ found: Found, _ file: BodyFile) -> Lookup {
        touches?.note(
            stamp: found.record.stamp, uptime: uptime.uptime(), Counters.Hit(0, isCounted: false), counters)
        return .hit(found, file)
    }

    /// As above, without the file.
    func look(_ key: Key, _ version: UInt16?) throws -> Found? {
        let indexKey = IndexKey.bytes(for: key)
        // Before the ranges: then none is missed that a writer told before it ended.
        let work = living?.find(key)
        let ending = work?.ending
        let now = clock.now()
        return try read { transaction in
            guard let raw = try transaction.get(index.entries, indexKey), let record = EntryRecord(raw),
                let progress = record.progress, record.key(indexKey) == key,
                EntryView(raw)?.isIntact(under: indexKey) == true,
                version.map({ $0 == record.version }) ?? true,
                let head = try index.blob(record.blob, transaction), !head.isDamaged,
                record.isOf(head), !damage.suspects.contains(head.epoch)
            else { return nil }
            if let work, work.place?.blob == record.blob {
                return Found(
                    record: record, head: head, progress: work.progress, isBeingWritten: ending == nil, work: work)
            }
            let isBeingWritten = try index.isBeingWritten(
                key: indexKey, record, at: now, files, transaction)
            if !isBeingWritten, record.isExpired(at: now) { return nil }
            return Found(
                record: record, head: head, progress: progress, isBeingWritten: isBeingWritten, work: nil)
        }
    }

    /// True if the entry under a key has the file that a writer with this token wrote.
    func length(_ key: Key, completedBy token: StagingToken) throws -> Int64? {
        let indexKey = IndexKey.bytes(for: key)
        return try read { transaction in
            guard let raw = try transaction.get(index.entries, indexKey), let record = EntryRecord(raw),
                record.key(indexKey) == key,
                let head = try index.blob(record.blob, transaction), head.isComplete,
                head.location == .file, head.token == token
            else { return nil }
            return Int64(clamping: head.length)
        }
    }
}
