import HTTPCaching
import Larder

/// Parts of representations: adding one, and combining many (RFC 9111 sections 3.3 and 3.4).
///
/// A range that is added is written once, beside what is there. Parts are combined when together they are the whole, which
/// copies each byte once, and when ``fanIn`` of about one size have come together, which gives one of the next size: so each
/// byte is copied once for each power of 16 that the parts grow by, and ten bytes never make the cache copy a gigabyte.
extension Shelf {
    /// Parts of one power of 16 that become one of the next.
    static let fanIn = 16

    /// Adds a part whose bytes were just put to the response under `key`, or begins a response with it. May wait.
    ///
    /// - Parameters:
    ///   - response: the response that brought the part.
    ///   - isUpdate: whether its fields are those of the stored response with the new ones in them.
    /// - Returns: false if the part is of no use: its bytes are there, there are too many parts, or what is stored came later.
    func add(
        _ part: StoredPart, of response: StoredResponse, isUpdate: Bool, at key: Key, primary: String,
        _ options: (StoredResponse, [StoredPart]) -> PutOptions
    ) throws -> Bool {
        try lock(primary).locked {
            // Another process may change the record at any time.
            for _ in 0..<8 {
                guard let entry = try store.get(key, includingExpired: true),
                    let record = StoredRecord(entry.metadata),
                    entry.body.length.bytes == record.response.body.available.count
                else { return try begin(part, of: response, at: key, replacing: [], options) }
                let stored = record.response
                guard !stored.body.isComplete, rules.areCombinable(stored, response) else {
                    guard stored.responseTime <= response.responseTime else { return false }
                    return try begin(part, of: response, at: key, replacing: record.parts, options)
                }
                let listed = record.parts.reduce(stored.body.available) { $0.union($1.ranges) }
                let rangeCount = record.parts.reduce(0) { $0 + $1.ranges.ranges.count }
                guard !part.ranges.ranges.allSatisfy({ listed.contains($0) }), record.parts.count < StoredPart.limit,
                    rangeCount + part.ranges.ranges.count <= StoredPart.rangeLimit
                else { return false }
                var new = isUpdate && stored.responseTime <= response.responseTime ? response : stored
                new.body = .partial(stored.body.available, total: stored.body.total ?? response.body.total)
                if try store.update(
                    entry, metadata: StoredRecord(new, parts: record.parts + [part]).encoded,
                    lifetime: lifetime(of: new.policy))
                {
                    return true
                }
            }
            return false
        }
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

    func remove(_ parts: [StoredPart], of key: Key) throws {
        for part in parts { try store.remove(part.key(key)) }
    }

    // MARK: Combining

    /// Combines the parts of a response for as long as that is worth it. One task at a time does so for a key; the others
    /// leave it to that one. `options` makes what is kept with the whole response.
    func combine(_ key: Key, primary: String, tags: [String], storagePolicy: StoragePolicy) async throws {
        guard combining.withLock({ $0.insert(key).inserted }) else { return }
        defer { combining.withLock { _ = $0.remove(key) } }
        while let found = try await store.perform({ [self] in try findOne(key) }), !found.parts.isEmpty {
            if case .complete(let length) = found.response.body {
                let options = options(for: found.response, tags: tags, storagePolicy: storagePolicy)
                guard
                    try await copy([0..<length], of: found, to: key, primary: primary, options, replacing: nil)
                else { return }
            } else {
                let group = Self.group(found.parts.map(\.part))
                guard group.count > 1 else { return }
                let part = StoredPart(ranges: group.reduce(ByteRanges()) { $0.union($1.ranges) })
                let options = PutOptions(
                    lifetime: lifetime(of: found.response.policy), storagePolicy: storagePolicy, tags: tags,
                    metadata: StoredPart.metadata)
                guard
                    try await copy(
                        part.ranges.ranges, of: found, to: part.key(key), primary: primary, options,
                        replacing: (part, group))
                else { return }
            }
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

    /// Copies ranges to an entry of their own, and puts it in the place of what held them. False if the response was changed
    /// meanwhile: then nothing is.
    /// - Parameter group: the new part and those that it replaces; nil where the whole response is copied to its own key.
    private func copy(
        _ ranges: [Range<Int64>], of found: Found, to target: Key, primary: String, _ options: PutOptions,
        replacing group: (new: StoredPart, old: [StoredPart])?
    ) async throws -> Bool {
        let writer = try store.writer(for: target, options)
        do {
            for range in ranges {
                var iterator = ResponseBody(found.segments(range)).makeAsyncIterator()
                while let piece = try await iterator.next() {
                    try await writer.write(piece)
                    copiedBytes.add(Int64(piece.count), ordering: .relaxed)
                }
            }
            let isCurrent = try await store.perform { [self] in
                try lock(primary).locked { try replace(found, by: writer, group) }
            }
            if !isCurrent { await writer.cancelElsewhere() }
            return isCurrent
        } catch {
            await writer.cancelElsewhere()
            throw error
        }
    }

    private func replace(
        _ found: Found, by writer: BodyWriter, _ group: (new: StoredPart, old: [StoredPart])?
    ) throws -> Bool {
        guard let entry = try store.get(found.key, includingExpired: true), entry.metadata == found.entry.metadata,
            entry.digest == found.entry.digest
        else { return false }
        try writer.commit()
        guard let group else {
            try remove(found.parts.map(\.part), of: found.key)
            return true
        }
        var response = found.response
        response.body = found.own
        let kept = found.parts.map(\.part).filter { !group.old.contains($0) }
        guard try store.update(entry, metadata: StoredRecord(response, parts: kept + [group.new]).encoded) else {
            try store.remove(group.new.key(found.key))
            return false
        }
        try remove(group.old, of: found.key)
        return true
    }
}
