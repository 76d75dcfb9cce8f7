import HTTPCaching
import Larder

/// Parts of representations: adding one, and combining many (RFC 9111 sections 3.3 and 3.4).
///
/// A range that is added is written once, next to what is there. Parts are combined when together they are the whole,
/// which copies each byte once, and when ``fanIn`` of about one size have come together, which gives one of the next
/// size: so each byte is copied once for each power of 16 that the parts grow by, and ten bytes never make the cache
/// copy a gigabyte.
extension ResponseStore {
    /// Parts of one power of 16 that become one of the next.
    static let fanIn = 16

    /// Adds a part whose bytes were just put to the response under `key`, or begins a response with it. May wait.
    ///
    /// - Parameters:
    ///   - response: the response that brought the part.
    ///   - isUpdate: whether its fields are those of the stored response with the new ones in them.
    ///   - now: what was stored after this moment was stored before the clock was set back.
    /// - Returns: false if the part is of no use: its bytes are there, there are too many parts, or what is stored came
    ///   later.
    func add(
        _ part: StoredPart, of response: StoredResponse, isUpdate: Bool, at key: Key, primary: String,
        now: Instant, _ options: (StoredResponse, [StoredPart]) -> PutOptions
    ) throws -> Bool {
        try lock(primary).locked {
            // Another process may change the record at any time.
            for _ in 0..<8 {
                guard let entry = try store.get(key, includingExpired: true),
                    let record = StoredRecord(entry.metadata),
                    entry.body.length.bytes == record.response.body.available.count
                else { return try begin(part, of: response, at: key, replacing: [], options) }
                let stored = record.response
                let isSame = rules.areCombinable(stored, response)
                if isSame, stored.body.isComplete { return false }
                guard isSame else {
                    guard stored.responseTime <= response.responseTime || stored.responseTime > now else {
                        return false
                    }
                    return try begin(part, of: response, at: key, replacing: record.parts, options)
                }
                guard let (kept, dropped) = try makingRoom(for: part, beside: stored, record.parts, of: key) else {
                    return false
                }
                var new = isUpdate && stored.responseTime <= response.responseTime ? response : stored
                new.body = .partial(stored.body.available, total: stored.body.total ?? response.body.total)
                if try store.update(
                    entry, metadata: StoredRecord(new, parts: kept + [part]).encoded, lifetime: lifetime(of: new.policy)
                ) {
                    try remove(dropped, of: key)
                    return true
                }
            }
            return false
        }
    }

    /// As below; where there is no place or no use for the part, only parts count whose entries are still there: others
    /// were displaced, or have expired.
    private func makingRoom(
        for part: StoredPart, beside stored: StoredResponse, _ parts: [StoredPart], of key: Key
    ) throws -> (kept: [StoredPart], dropped: [StoredPart])? {
        func room(_ parts: [StoredPart]) -> (kept: [StoredPart], dropped: [StoredPart])? {
            let listed = stored.body.available.union(parts.map(\.ranges))
            if part.ranges.ranges.allSatisfy({ listed.contains($0) }) { return nil }
            return Self.makingRoom(for: part, among: parts)
        }
        if let room = room(parts) { return room }
        let there = try parts.filter { try store.contains($0.key(key)) }
        return there.count < parts.count ? room(there) : nil
    }

    /// The parts that stay when one is added, and those that give way to it: the smallest, as long as they are smaller.
    /// Nil when there is no place.
    static func makingRoom(
        for part: StoredPart, among parts: [StoredPart]
    ) -> (kept: [StoredPart], dropped: [StoredPart])? {
        var kept = parts
        var dropped: [StoredPart] = []
        var rangeCount = parts.reduce(part.ranges.ranges.count) { $0 + $1.ranges.ranges.count }
        while kept.count >= StoredPart.limit || rangeCount > StoredPart.rangeLimit {
            guard let index = kept.indices.min(by: { kept[$0].ranges.count < kept[$1].ranges.count }),
                kept[index].ranges.count < part.ranges.count
            else { return nil }
            rangeCount -= kept[index].ranges.ranges.count
            dropped.append(kept.remove(at: index))
        }
        return (kept, dropped)
    }

    private func begin(
        _ part: StoredPart, of response: StoredResponse, at key: Key, replacing old: [StoredPart],
        _ options: (StoredResponse, [StoredPart]) -> PutOptions
    ) throws -> Bool {
        var response = response
        response.body = .partial(ByteRanges(), total: response.body.total)
        try store.put([], for: key, options(response, [part]))
        try remove(old, of: key)
        return true
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

    /// What is recorded under a key; the cooperative pool does not wait.
    func record(at key: Key) async throws -> StoredRecord? {
        try await store.get(key, includingExpired: true).flatMap { StoredRecord($0.metadata) }
    }

    func remove(_ parts: [StoredPart], of key: Key) throws {
        for part in parts { try store.remove(part.key(key)) }
    }

    // MARK: Combining

    /// Combines the parts of a response for as long as that is worth it. One task at a time does so for a key; to the
    /// others it is enough that this one looks again.
    func combine(_ key: Key, primary: String, tags: [String], storagePolicy: StoragePolicy) async throws {
        let isFirst = combining.withLock { combining in
            defer { combining[key] = true }
            return combining[key] == nil
        }
        guard isFirst else { return }
        while true {
            combining.withLock { $0[key] = false }
            do {
                while try await combineOnce(key, primary, tags, storagePolicy) {}
            } catch {
                combining.withLock { $0[key] = nil }
                throw error
            }
            let isOver = combining.withLock { combining in
                if combining[key] == true { return false }
                combining[key] = nil
                return true
            }
            if isOver { return }
        }
    }

    /// False if there is nothing to combine.
    private func combineOnce(
        _ key: Key, _ primary: String, _ tags: [String], _ storagePolicy: StoragePolicy
    ) async throws -> Bool {
        guard let found = try await store.perform({ [self] in try findOne(key) }), !found.parts.isEmpty else {
            return false
        }
        let old: [StoredPart]
        let new: StoredPart?
        var metadata: [UInt8] = []
        if found.response.body.isComplete {
            (old, new) = (found.parts.map(\.part), nil)
        } else {
            old = Self.group(found.parts.map(\.part))
            guard old.count > 1 else { return false }
            new = StoredPart(ranges: ByteRanges().union(old.map(\.ranges)))
            metadata = StoredPart.metadata
        }
        let options = PutOptions(
            lifetime: lifetime(of: found.response.policy), storagePolicy: storagePolicy, tags: tags, metadata: metadata)
        let writer = try store.writer(for: new?.key(key) ?? key, options)
        do {
            try await copy(new?.ranges.ranges ?? found.response.body.available.ranges, of: found, to: writer)
            let isDone = try await store.perform { [self] in
                try lock(primary).locked { try replace(old, of: found, by: new, writer, options) }
            }
            if !isDone { await writer.cancelElsewhere() }
            return isDone
        } catch {
            await writer.cancelElsewhere()
            throw error
        }
    }

    /// Parts that are to become one: the smallest ``fanIn`` or more of one power of 16.
    static func group(_ parts: [StoredPart]) -> [StoredPart] {
        var classes: [Int: [StoredPart]] = [:]
        for part in parts {
            let bits = Int64.bitWidth - part.ranges.count.leadingZeroBitCount
            classes[bits / 4, default: []].append(part)
        }
        return classes.filter { $0.value.count >= fanIn }.min { $0.key < $1.key }?.value ?? []
    }

    private func copy(_ ranges: [Range<Int64>], of found: Found, to writer: BodyWriter) async throws {
        for range in ranges {
            var iterator = ResponseBody(found.segments(range)).makeAsyncIterator()
            while let piece = try await iterator.next() {
                try await writer.write(piece)
                copiedBytes.add(Int64(piece.count), ordering: .relaxed)
            }
        }
    }

    /// Puts what was copied in the place of what held it; false if that is not there any more. What was added meanwhile
    /// stays. Call it under the lock of the primary key.
    /// - Parameter new: nil where the whole response was copied to its own key.
    private func replace(
        _ old: [StoredPart], of found: Found, by new: StoredPart?, _ writer: BodyWriter, _ options: PutOptions
    ) throws -> Bool {
        let key = found.key
        for isFirst in [true, false, false, false] {
            guard let entry = try store.get(key, includingExpired: true), entry.digest == found.entry.digest,
                let record = StoredRecord(entry.metadata), record.response.body.available == found.own.available,
                old.allSatisfy(record.parts.contains)
            else {
                if !isFirst, let new { try store.remove(new.key(key)) }
                return false
            }
            guard let new else {
                var response = record.response
                response.body = found.response.body
                response.head.headerFields[.contentLength] = response.body.total.map(String.init)
                var options = options
                options.lifetime = lifetime(of: response.policy)
                options.metadata = StoredRecord(response).encoded
                try writer.use(options)
                try writer.commit()
                try remove(record.parts, of: key)
                return true
            }
            if isFirst { try writer.commit() }
            let kept = record.parts.filter { !old.contains($0) }
            if try store.update(entry, metadata: StoredRecord(record.response, parts: kept + [new]).encoded) {
                try remove(old, of: key)
                return true
            }
        }
        if let new { try store.remove(new.key(key)) }
        return false
    }
}
