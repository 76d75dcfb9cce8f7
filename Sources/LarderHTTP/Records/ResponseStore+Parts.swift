import HTTPCaching
import Larder

/// Parts of representations: listing them (RFC 9111 section 3.3).
extension ResponseStore {
    /// Lists a part, or more of one, whose bytes were just stored, in the response under `key`, or begins a response
    /// with it. May wait.
    ///
    /// - Parameters:
    ///   - part: its new ranges only.
    ///   - response: the response that brought the part.
    ///   - isUpdate: whether its fields are those of the stored response with the new ones in them.
    ///   - tags: of the load. The response and the part keep those that they have.
    ///   - now: what was stored after this moment was stored before the clock was set back.
    /// - Returns: `isStored`: false if the part is of no use: its bytes are there, there are too many parts or tags,
    ///   what is stored came later, or the part was purged. `isWhole`: whether parts are listed that are the whole.
    func add(
        _ part: StoredPart, of response: StoredResponse, isUpdate: Bool, at key: Key, primary: String,
        tags: [String], now: Instant, _ options: (StoredResponse, [StoredPart]) -> PutOptions
    ) throws -> (isStored: Bool, isWhole: Bool) {
        try lock(primary).locked {
            // Another process may change the record at any time.
            for _ in 0..<8 {
                guard let entry = try store.get(key, includingExpired: true),
                    let record = StoredRecord(entry.metadata),
                    entry.body.length.bytes == record.response.body.available.count
                else { return try begin(part, of: response, at: key, replacing: [], options) }
                let stored = record.response
                guard rules.areCombinable(stored, response) else {
                    guard stored.responseTime <= response.responseTime || stored.responseTime > now else {
                        return (false, false)
                    }
                    return try begin(part, of: response, at: key, replacing: record.parts, options)
                }
                if stored.body.isComplete { return (false, false) }
                let known = entry.attributes
                guard let (kept, dropped) = try makingRoom(for: part, beside: stored, record.parts, of: key),
                    let tags = ResponseTags.union(known.tags, tags),
                    // The tags of an entry in memory do not change.
                    known.storagePolicy != .memoryOnly || tags == known.tags
                else { return (false, Self.isWhole(stored, record.parts)) }
                var new = isUpdate && stored.responseTime <= response.responseTime ? response : stored
                new.body = .partial(stored.body.available, total: stored.body.total ?? response.body.total)
                let lifetime = lifetime(of: new.policy)
                var batch = WriteBatch()
                batch.update(
                    entry,
                    EntryChange(
                        metadata: StoredRecord(new, parts: kept).encoded, lifetime: lifetime,
                        tags: tags == known.tags ? nil : tags
                    ).withReservedNames)
                batch.change(
                    part.key(key),
                    EntryChange(
                        lifetime: lifetime, tags: known.storagePolicy == .memoryOnly ? nil : tags
                    ).withReservedNames)
                if try store.write(batch)[0].isSuccess {
                    try remove(dropped, of: key)
                    return (true, Self.isWhole(new, kept))
                }
            }
            return (false, false)
        }
    }

    private static func isWhole(_ response: StoredResponse, _ parts: [StoredPart]) -> Bool {
        response.body.total.map { response.body.available.union(parts.map(\.ranges)).contains(0..<$0) } ?? false
    }

    /// The parts to list when one is added, that one included, and those that give way to it; nil where there is no
    /// place or no use for it. Before that is said, only parts count whose entries are still there, and of those only
    /// bytes that are there: others were displaced, have expired, or were lost when a process was killed.
    private func makingRoom(
        for part: StoredPart, beside stored: StoredResponse, _ parts: [StoredPart], of key: Key
    ) throws -> (kept: [StoredPart], dropped: [StoredPart])? {
        func room(_ parts: [StoredPart]) -> (kept: [StoredPart], dropped: [StoredPart])? {
            let old = parts.first { $0.id == part.id }?.ranges ?? ByteRanges()
            let new = StoredPart(id: part.id, ranges: old.union(part.ranges))
            return Self.makingRoom(for: new, among: parts.filter { $0.id != part.id }).map { ($0 + [new], $1) }
        }
        let listed = stored.body.available.union(parts.map(\.ranges))
        if !part.ranges.ranges.allSatisfy({ listed.contains($0) }), let room = room(parts) { return room }
        let found = try parts.compactMap { try FoundPart($0, of: key, in: store) }
        let others = stored.body.available.union(found.filter { $0.part.id != part.id }.map(\.available))
        if part.ranges.ranges.allSatisfy({ others.contains($0) }) { return nil }
        return room(found.map(\.part))
    }

    /// The parts that stay when one is added, and those that give way to it: the smallest, as long as they are not
    /// larger, and of those the ones that were written first. Nil when there is no place.
    static func makingRoom(
        for part: StoredPart, among parts: [StoredPart]
    ) -> (kept: [StoredPart], dropped: [StoredPart])? {
        var kept = parts
        var dropped: [StoredPart] = []
        var rangeCount = parts.reduce(part.ranges.ranges.count) { $0 + $1.ranges.ranges.count }
        while kept.count >= StoredPart.limit || rangeCount > StoredPart.rangeLimit {
            guard let index = kept.indices.min(by: { kept[$0].ranges.count < kept[$1].ranges.count }),
                kept[index].ranges.count <= part.ranges.count
            else { return nil }
            rangeCount -= kept[index].ranges.ranges.count
            dropped.append(kept.remove(at: index))
        }
        return (kept, dropped)
    }

    private func begin(
        _ part: StoredPart, of response: StoredResponse, at key: Key, replacing old: [StoredPart],
        _ options: (StoredResponse, [StoredPart]) -> PutOptions
    ) throws -> (isStored: Bool, isWhole: Bool) {
        // Purged by another process, which found no record.
        guard try FoundPart(part, of: key, in: store) != nil else { return (false, false) }
        var response = response
        response.body = .partial(ByteRanges(), total: response.body.total)
        try store.put([], for: key, options(response, [part]))
        try remove(old.filter { $0.id != part.id }, of: key)
        return (true, Self.isWhole(response, [part]))
    }

    /// Removes a response under its own key, and its parts; false if there was none. May wait.
    @discardableResult
    func removeOne(_ key: Key) throws -> Bool {
        let parts = try parts(at: key)
        let isRemoved = try store.remove(key)
        try remove(parts, of: key)
        return isRemoved
    }

    /// The parts that are listed under a key.
    func parts(at key: Key) throws -> [StoredPart] {
        try store.get(key, includingExpired: true).flatMap { StoredRecord($0.metadata) }?.parts ?? []
    }

    /// The parts that are listed under a key, and the entry that lists them, if they are of the same representation as
    /// a response.
    func parts(of response: StoredResponse, at key: Key) throws -> (parts: [StoredPart], entry: Attributes)? {
        guard let entry = try store.get(key, includingExpired: true), let record = StoredRecord(entry.metadata),
            rules.areCombinable(record.response, response)
        else { return nil }
        return (record.parts, entry.attributes)
    }

    /// What is recorded under a key; the cooperative pool does not wait.
    func record(at key: Key) async throws -> StoredRecord? {
        try await store.get(key, includingExpired: true).flatMap { StoredRecord($0.metadata) }
    }

    func remove(_ parts: [StoredPart], of key: Key) throws {
        for part in parts { try store.remove(part.key(key)) }
    }
}
