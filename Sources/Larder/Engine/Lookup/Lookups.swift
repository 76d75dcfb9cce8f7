import LMDB

/// Looks entries up by key: first what this process has in memory, then what is pending, then the index.
///
/// Safe from any thread. The lookup caches are used by the holder of a reader slot only. A hit takes no lock but those
/// of tables that are not empty and of a stripe of the touch buffer, and allocates nothing but the copy of its body.
final class Lookups: EnginePart {
    let context: EngineContext
    // Here again, where a hit gets at them in one step.
    let index: Index
    let clock: EntryClock
    let uptime = SystemClock()
    let counters: Counters
    private let memory: MemoryTable
    private let bodies: Bodies
    private let damage: Damage
    private let descriptions: Descriptions
    /// One for each pooled reader slot of the environment.
    private let caches: [LookupCache]
    /// Nil in a read-only engine.
    private let uses: Uses?
    // SAFETY: `uses` is never let go before this. A hit must not count references to what all threads share: two
    // threads that do so pass the counter's cache line back and forth, and together are not faster than one.
    private let usesReference: Unmanaged<Uses>?

    /// What a lookup asks and tells in an engine that may write.
    final class Uses: Sendable {
        let pending: PendingSet
        let touches: TouchBuffer

        init(pending: PendingSet, touches: TouchBuffer) {
            self.pending = pending
            self.touches = touches
        }
    }

    init(
        context: EngineContext, memory: MemoryTable, bodies: Bodies, damage: Damage, descriptions: Descriptions,
        uses: Uses?
    ) {
        self.context = context
        index = context.index
        clock = context.clock
        counters = context.counters
        self.memory = memory
        self.bodies = bodies
        self.damage = damage
        self.descriptions = descriptions
        self.uses = uses
        usesReference = uses.map(Unmanaged.passUnretained)
        let copies = CopyMemory()
        caches = (0..<Environment.slotCount).map { _ in LookupCache(context.ownCommits, copies) }
        index.environment.whenMapMoves { [caches] in for cache in caches { cache.clear() } }
    }

    /// As that of every part, by way of the index that is here: a copy of the context's would count references to it.
    @inline(__always)
    private func read<R>(_ body: (ReadTransaction) throws -> R) throws -> R {
        do {
            return try index.environment.read(body)
        } catch let error as LMDBError {
            throw context.translate(error)
        }
    }

    /// Runs `body` with the pending set and the touch buffer, without counting a reference to them; nil in a read-only
    /// engine.
    @inline(__always)
    private func withUses<R>(_ body: (Uses) -> R) -> R? {
        usesReference?._withUnsafeGuaranteedRef(body)
    }

    /// Notes an access to an entry in the index, and counts it.
    /// - Parameters:
    ///   - length: of its body, in bytes.
    ///   - use: when, by the uptime.
    @inline(__always)
    private func noteHit(stamp: UInt64, length: UInt64, use: UInt64, _ visibility: Visibility) {
        guard visibility.isAccess else { return }
        let hit = Counters.Hit(length, isCounted: visibility.isCounted)
        let isNoted: Void? = withUses { $0.touches.note(stamp: stamp, uptime: use, hit, counters) }
        if isNoted == nil { counters.addHits(hit.count, bytes: hit.bytes) }
    }

    /// Which entries a lookup sees.
    struct Visibility: Sendable {
        /// Only this application version; nil: all.
        var version: UInt16?
        var includesExpired: Bool
        /// False for a lookup that is a step of another one.
        var isCounted = true
        /// False for a look that does not count as a use of the entry.
        var isAccess = true
        /// True for a caller that may not need all bytes of a body, or sends it compressed: it is left as it is stored.
        var decodesLater = false
    }

    /// What a lookup in the index found, before a file is opened.
    private enum Found {
        case inline(Entry)
        case file(record: RecordCopy, head: BlobRecord, blob: UInt64)
        case damaged
    }

    func get(_ key: Key, _ visibility: Visibility) throws -> Entry? {
        guard case .hit(let entry) = try lookup(key, visibility, mayWait: true) else { return nil }
        return entry
    }

    /// The entry under a key, counted and now and then measured.
    /// - Parameter mayWait: false returns `due` instead of comparing a body with its digest, or looking for a file that
    ///   is not in its place.
    @inline(__always)
    func lookup(_ key: Key, _ visibility: Visibility, mayWait: Bool) throws -> Store.Lookup {
        let began = visibility.isCounted && counters.isLookupMeasured ? uptime.uptime() : 0
        var found = Store.Lookup.miss
        try whileMoving {
            found = try lookInEachPlace(key, visibility, mayWait: mayWait)
            if case .miss = found { return false }
            return true
        }
        // Hits were counted where they were found. No entry is taken out of the result here, which would count its
        // references a second time.
        if case .miss = found, visibility.isCounted { counters.addMisses() }
        if began == 0 { return found }
        if case .due = found { return found }
        counters.note(.lookup, nanoseconds: uptime.uptime() &- began)
        return found
    }

    /// A key that moves between memory and disk may be missed in both: looks again until none has moved meanwhile.
    @inline(__always)
    private func whileMoving(_ isFound: () throws -> Bool) rethrows {
        for _ in 0..<100 {
            let moves = memory.moves
            if try isFound() || memory.moves == moves { return }
        }
    }

    /// Memory, what is pending, the index.
    @inline(__always)
    private func lookInEachPlace(_ key: Key, _ visibility: Visibility, mayWait: Bool) throws -> Store.Lookup {
        let use = uptime.uptime()
        // Memory first: an entry there has a removal pending for what was on disk under its key.
        if let put = memory.lookup(key, use: use, at: clock.now()) {
            guard isVisible(put, visibility), let entry = try countedEntry(put, visibility) else { return .miss }
            return .hit(entry)
        }
        if let pending = withUses({ $0.pending.lookup(key, use: use) }) ?? nil {
            guard case .put(let put) = pending, isVisible(put, visibility) else { return .miss }
            if let entry = try countedEntry(put, visibility) { return .hit(entry) }
        }
        if !mayWait, bodies.isVerifying { return .due }
        // A file that is gone was displaced between lookup and open: look again. An entry that is still there then may
        // have its file in `trash/`, by a removal that was not committed; if not, it is a miss, and is noted as one.
        for attempt in 0..<3 {
            switch try read({ try readEntry(key, visibility, use: use, $0) }) {
            case nil, .damaged:
                return .miss
            case .inline(let entry):
                return .hit(entry)
            case .file(let record, let head, let blob):
                if !mayWait, damage.isDue(head, blob) { return .due }
                // A store that may write puts such a file back at the second attempt, and finds it in its place at the
                // third.
                let isDiscarded = attempt > (damage.isReadOnly ? 0 : 1)
                if let body = try bodies.open(
                    head, blob, isDiscarded: isDiscarded, mayWait: mayWait,
                    decodesLater: visibility.decodesLater)
                {
                    noteHit(stamp: record.stamp, length: head.length, use: use, visibility)
                    return .hit(Entry(key: key, body: body, source: .index(record: record, head: head)))
                }
                if !mayWait { return .due }
                if attempt == 1 { try damage.reportVanished(blob, head) }
            }
        }
        return .miss
    }

    /// What the index has under a key.
    @inline(__always)
    private func readEntry(
        _ key: Key, _ visibility: Visibility, use: UInt64, _ transaction: ReadTransaction
    ) throws -> Found? {
        guard let (view, blobBytes) = try locate(key, visibility, transaction) else { return nil }
        guard let parts = view.parts else { return .damaged }
        if bodies.isVerifying, !isIntact(view, key) { return .damaged }
        let record = RecordCopy(view, parts)
        if view.isEmbedded {
            noteHit(stamp: view.stamp, length: UInt64(parts.body.count), use: use, visibility)
            return .inline(Entry(key: key, body: Body(Array(view.bytes(parts.body))), source: .embedded(record)))
        }
        guard let head = BlobRecord(blobBytes), head.isComplete, view.fits(blobBytes) else { return .damaged }
        guard head.location == .inline else { return .file(record: record, head: head, blob: view.blob) }
        let body: Body
        if head.encoding == .gzip, visibility.decodesLater, !bodies.isVerifying {
            body = bodies.body(of: Body(Array(BlobRecord.inlineBytes(blobBytes))), head, view.blob)
        } else {
            guard let bytes = try bodies.soundBytes(blobBytes, head, view.blob) else { return .damaged }
            body = Body(bytes)
        }
        noteHit(stamp: view.stamp, length: head.length, use: use, visibility)
        return .inline(Entry(key: key, body: body, source: .index(record: record, head: head)))
    }

    /// The entries under many keys, as one snapshot of the index has them, and what was pending when it was taken. What
    /// a batch of this process did is seen in all of them, or in none.
    func get(_ keys: [Key], _ visibility: Visibility) throws -> [Entry?] {
        var uncounted = visibility
        uncounted.isCounted = false
        let moves = memory.moves
        var (result, gone) = try lookInEachPlace(keys, uncounted)
        for _ in 0..<3 where !gone.isEmpty { (result, gone) = try lookInEachPlace(keys, uncounted) }
        for place in gone { result[place] = try get(keys[place], uncounted) }
        if memory.moves != moves {
            // One that moved between memory and disk may have been missed at both.
            for (place, key) in keys.enumerated() where result[place] == nil {
                result[place] = try get(key, uncounted)
            }
        }
        if visibility.isCounted { counters.addLookups(result.lazy.map(\.?.body)) }
        return result
    }

    /// As above. Also returns the places of entries whose files are gone: displaced since, or put again, perhaps by a
    /// batch that has changed others of them, too.
    private func lookInEachPlace(_ keys: [Key], _ visibility: Visibility) throws -> (found: [Entry?], gone: [Int]) {
        let use = uptime.uptime()
        var result = [Entry?](repeating: nil, count: keys.count)
        var uncommitted: [(place: Int, put: PendingPut)] = []
        var files: [(place: Int, record: RecordCopy, head: BlobRecord, blob: UInt64)] = []
        var isDone = false
        while !isDone {
            isDone = try read { transaction in
                guard let pending = pending(keys, use, transaction) else { return false }
                for (place, key) in keys.enumerated() {
                    if let put = memory.lookup(key, use: use, at: clock.now()) {
                        uncommitted.append((place, put))
                    } else if let change = pending[place] {
                        if case .put(let put) = change { uncommitted.append((place, put)) }
                    } else {
                        switch try readEntry(key, visibility, use: use, transaction) {
                        case nil, .damaged: break
                        case .inline(let entry): result[place] = entry
                        case .file(let record, let head, let blob): files.append((place, record, head, blob))
                        }
                    }
                }
                return true
            }
        }
        var gone: [Int] = []
        for (place, put) in uncommitted where isVisible(put, visibility) {
            result[place] = try entry(put)
            if result[place] == nil { gone.append(place) }
        }
        for (place, record, head, blob) in files {
            if let body = try bodies.open(head, blob, isDiscarded: false) {
                noteHit(stamp: record.stamp, length: head.length, use: use, visibility)
                result[place] = Entry(key: keys[place], body: body, source: .index(record: record, head: head))
            } else {
                gone.append(place)
            }
        }
        return (result, gone)
    }

    /// What is pending under each of the keys, beside a snapshot; nil if a newer snapshot is needed for that.
    private func pending(_ keys: [Key], _ use: UInt64, _ transaction: ReadTransaction) -> [PendingSet.Lookup?]? {
        // A store that only reads has nothing pending.
        guard let uses else { return [PendingSet.Lookup?](repeating: nil, count: keys.count) }
        return uses.pending.lookup(keys, use: use, snapshot: transaction.id)
    }

    /// True if the record is whole and belongs to the key, and so does a body that is part of it.
    private func isIntact(_ view: EntryView, _ key: Key) -> Bool {
        guard view.isIntact(under: IndexKey.bytes(for: key)) else {
            logger(.integrity).error("damaged entry", metadata: ["key": "\(key)"])
            return false
        }
        guard let body = view.embedded else { return true }
        let digest = Digest.of(body)
        if EntryRecord.Embedded.prefix(digest) == view.digestPrefix { return true }
        damage.reportEmbedded(under: key, found: digest)
        return false
    }

    /// The record under `key`, if it may be seen, and the value of its blob; empty where the body is embedded.
    @inline(__always)
    private func locate(_ key: Key, _ visibility: Visibility, _ transaction: ReadTransaction) throws -> (
        EntryView, UnsafeRawBufferPointer
    )? {
        guard let values = try IndexKey.with(key, { try cachedRows(of: $0, transaction) }),
            let view = EntryView(values.entry)
        else { return nil }
        if IndexKey.isLong(key), !view.hasLongKey(key) { return nil }
        if let version = visibility.version, view.version != version { return nil }
        let expires = view.expires
        if expires != .max, !visibility.includesExpired, expires <= clock.now().microseconds {
            clock.noteExpiry()
            return nil
        }
        return (view, values.blob)
    }

    /// The values under an index key and of the blob it leads to.
    @inline(__always)
    private func cachedRows(
        of key: UnsafeRawBufferPointer, _ transaction: ReadTransaction
    ) throws -> LookupCache.Values? {
        // No entry has an empty key, and LMDB refuses to look for one.
        if key.isEmpty { return nil }
        // Rows that were opened do not stay where they are.
        guard let slot = transaction.slot, index.isOrdered else { return try rows(of: key, transaction) }
        let cache = caches[slot]
        guard cache.isWorthALook else { return try rows(of: key, transaction) }
        let snapshot = transaction.id
        let hash = KeyHash.of(key)
        switch cache.find(key, hash, in: snapshot) {
        case .values(let values): return values
        case .entry(let entry):
            guard let values = try row(of: entry, transaction) else { return nil }
            cache.renew(key, hash, in: snapshot, blob: values.blob)
            return values
        case nil:
            guard let found = try rows(of: key, transaction) else { return nil }
            cache.note(key, hash, in: snapshot, found)
            return found
        }
    }

    private func rows(
        of key: UnsafeRawBufferPointer, _ transaction: ReadTransaction
    ) throws -> LookupCache.Values? {
        try transaction.get(index.entries, key).flatMap { try row(of: $0, transaction) }
    }

    /// As above, of an entry that was found.
    private func row(
        of entry: UnsafeRawBufferPointer, _ transaction: ReadTransaction
    ) throws -> LookupCache.Values? {
        guard let view = EntryView(entry) else { return nil }
        if view.isEmbedded {
            return LookupCache.Values(entry: entry, blob: UnsafeRawBufferPointer(start: nil, count: 0))
        }
        return try transaction.get(index.blobs, view.blob).map { LookupCache.Values(entry: entry, blob: $0) }
    }

    /// Runs `body` on the bytes of a hit, in place where they are in the index.
    func visitBody(of key: Key, _ visibility: Visibility, _ body: (RawSpan) throws -> Void) throws {
        let isDone: Void? = try visitInline(key, visibility) { _, bytes in try body(bytes.bytes) }
        if isDone == nil { try get(key, visibility)?.body.withBytes(body) }
    }

    /// Copies the bytes of a hit into `buffer`, as far as they fit; returns how many there are, nil for a miss.
    func read(_ key: Key, _ visibility: Visibility, into buffer: UnsafeMutableRawBufferPointer) throws -> Int? {
        let length = try visitInline(key, visibility) { _, bytes in
            buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes.prefix(buffer.count)))
            return bytes.count
        }
        if let length { return length }
        guard let body = try get(key, visibility)?.body else { return nil }
        _ = try body.read(into: buffer)
        return Int(clamping: body.length.bytes)
    }

    /// Runs `body` on the record and the bytes of a hit that is committed and whose body is in the index; nil, without
    /// running it, for every other and for a miss.
    @inline(__always)
    func visitInline<R>(
        _ key: Key, _ visibility: Visibility, _ body: (EntryView, UnsafeRawBufferPointer) throws -> R
    ) throws -> R? {
        guard !bodies.isVerifying else { return nil }
        let use = uptime.uptime()
        guard memory.lookup(key, use: nil) == nil, isNotPending(key) else { return nil }
        return try read { transaction in
            guard let (view, blob) = try locate(key, visibility, transaction),
                let (bytes, encoding) = bytesInPlace(view, blob), encoding == .identity
            else { return nil }
            noteHit(stamp: view.stamp, length: view.length, use: use, visibility)
            return try body(view, bytes)
        }
    }

    /// The bytes of a body in the index: all of it, or its gzip member. Nil if it is elsewhere.
    @inline(__always)
    private func bytesInPlace(
        _ view: EntryView, _ blob: UnsafeRawBufferPointer
    ) -> (bytes: UnsafeRawBufferPointer, encoding: BodyEncoding)? {
        if let bytes = view.embedded { return (bytes, .identity) }
        guard blob.count >= BlobRecord.inlineLength,
            blob[1] == BlobRecord.Location.inline.rawValue, blob[3] == 0, view.fits(blob)
        else { return nil }
        if BlobRecord.isPlain(blob) {
            let bytes = BlobRecord.inlineBytes(blob)
            // Callers take as many of them as the record says.
            return UInt64(bytes.count) == view.length ? (bytes, .identity) : nil
        }
        return BlobRecord.isMember(blob) ? (BlobRecord.inlineBytes(blob), .gzip) : nil
    }

    /// Runs `body` on the record of a hit that is committed, and on what was made of its body and is held in memory;
    /// nil, without running it, for every other hit and for a miss.
    /// - Parameter kind: the number of a `HeldKind`, whose type the value has.
    func visitHeld<R>(
        _ key: Key, _ visibility: Visibility, _ kind: Int, _ body: (EntryView, Digest, any Sendable) throws -> R
    ) throws -> R? {
        let use = uptime.uptime()
        guard memory.lookup(key, use: nil) == nil, isNotPending(key) else { return nil }
        return try read { transaction in
            guard let (view, blob) = try locate(key, visibility, transaction), let digest = digest(view, blob),
                let value = bodies.held(kind, digest)
            else { return nil }
            noteHit(stamp: view.stamp, length: view.length, use: use, visibility)
            return try body(view, digest, value)
        }
    }

    /// The digest of a whole body; nil if it is damaged, or has no bytes: such an entry may stand for a missing value,
    /// as its tags say.
    @inline(__always)
    private func digest(_ view: EntryView, _ blob: UnsafeRawBufferPointer) -> Digest? {
        guard view.length > 0 else { return nil }
        if let bytes = view.embedded { return Digest.of(bytes) }
        guard let head = BlobRecord(blob), head.isComplete, view.fits(blob) else { return nil }
        return head.digest
    }

    /// Runs `inPlace` or `held` on a hit whose body is in memory, by a search of what is pending and one of the index.
    /// Of every other key it says whether `lookup` would miss it; such a miss is counted.
    /// - Parameters:
    ///   - kind: the number of a `HeldKind`, whose type the value has.
    ///   - other: the same of a second way in which what is held may have been made.
    ///   - inPlace: gets the metadata, nil if the record is damaged, and the bytes of the body, or its gzip member.
    ///   - held: gets what was made of the body, and whether in the second way.
    func visitAtHand(
        _ key: Key, _ visibility: Visibility, _ kind: Int, or other: Int?,
        inPlace: (_ metadata: UnsafeRawBufferPointer?, UnsafeRawBufferPointer, BodyEncoding, _ length: UInt64) -> Void,
        held: (EntryView, Digest, any Sendable, _ isOther: Bool) -> Void
    ) throws -> Store.AtHand {
        guard !bodies.isVerifying else { return .elsewhere }
        let use = uptime.uptime()
        let moves = memory.moves
        guard memory.lookup(key, use: nil) == nil else { return .elsewhere }
        let pending = withUses {
            $0.pending.put(key, use: visibility.isAccess ? use : nil) {
                $0.bytesAtHand != nil && isVisible($0, visibility)
            }
        }
        if let put = pending?.put, let bytes = put.bytesAtHand {
            if visibility.isCounted { counters.addHits(bytes: put.length) }
            put.options.metadata.withUnsafeBytes { metadata in
                bytes.withUnsafeBytes { inPlace(metadata, $0, .identity, put.length) }
            }
            return .visited
        }
        if pending?.isPending == true { return .elsewhere }
        let found: Store.AtHand = try read { transaction in
            guard let (view, blob) = try locate(key, visibility, transaction) else { return .absent }
            if let (bytes, encoding) = bytesInPlace(view, blob) {
                noteHit(stamp: view.stamp, length: view.length, use: use, visibility)
                inPlace(view.metadata, bytes, encoding, view.length)
                return .visited
            }
            guard let digest = digest(view, blob), let value = bodies.held(kind, or: other, digest) else {
                return .elsewhere
            }
            noteHit(stamp: view.stamp, length: view.length, use: use, visibility)
            held(view, digest, value.value, value.isOther)
            return .visited
        }
        guard found == .absent else { return found }
        // A key that moved between memory and disk may have been missed in both.
        if memory.moves != moves { return .elsewhere }
        if visibility.isCounted { counters.addMisses() }
        return .absent
    }

    @inline(__always)
    private func isNotPending(_ key: Key) -> Bool {
        withUses { $0.pending.lookup(key, use: nil) == nil } ?? true
    }

    func contains(_ key: Key, _ visibility: Visibility) throws -> Bool {
        var isFound = false
        try whileMoving {
            isFound = try isThere(key, visibility)
            return isFound
        }
        return isFound
    }

    @inline(__always)
    private func isThere(_ key: Key, _ visibility: Visibility) throws -> Bool {
        if let put = memory.lookup(key, use: nil) { return isVisible(put, visibility) }
        if let pending = withUses({ $0.pending.lookup(key, use: nil) }) ?? nil {
            guard case .put(let put) = pending else { return false }
            return isVisible(put, visibility)
        }
        return try read { transaction in
            guard let (view, blob) = try locate(key, visibility, transaction) else { return false }
            if view.isEmbedded { return view.parts != nil }
            return blob.count > 3 && blob[3] == 0 && blob[2] != BodyEncoding.partial.rawValue && view.fits(blob)
        }
    }

    func attributes(of key: Key, _ visibility: Visibility) throws -> Attributes? {
        if let put = memory.lookup(key, use: nil) {
            return isVisible(put, visibility) ? try descriptions.attributes(ofMemory: put, withLeases: true) : nil
        }
        return try read { transaction in
            guard let (view, _) = try locate(key, visibility, transaction) else { return nil }
            return try descriptions.attributes(view.raw, IndexKey.bytes(for: key), withLeases: true, transaction)
        }
    }

    private func isVisible(_ put: PendingPut, _ visibility: Visibility) -> Bool {
        if let version = visibility.version, put.version != version { return false }
        if visibility.includesExpired || put.expires == .distantFuture || put.expires > clock.now() { return true }
        clock.noteExpiry()
        return false
    }

    /// Nil if the index has it by now.
    private func countedEntry(_ put: PendingPut, _ visibility: Visibility) throws -> Entry? {
        guard let entry = try entry(put) else { return nil }
        if visibility.isCounted { counters.addHits(bytes: put.length) }
        return entry
    }

    private func entry(_ put: PendingPut) throws -> Entry? {
        let body: Body
        switch put.body {
        case .inline(let bytes): body = Body(bytes)
        case .content: preconditionFailure("readers do not see a put of content before its commit")
        case .staged(let file):
            // The file is renamed when the put is committed; its descriptor stays good.
            guard let descriptor = put.openFile else { return nil }
            let place = BodyPlace(directory: files.staging, name: .token(file.token))
            let length = Int64(clamping: put.length)
            let storedLength = file.encoding == .gzip ? file.length : length
            let stored =
                if let seal = file.seal {
                    Body(
                        sealed: SealedBody(
                            BodyFile(descriptor: descriptor, seal: seal), at: place, place.path, length: storedLength))
                } else {
                    Body(file: descriptor, at: place, length: ByteCount(storedLength))
                }
            body = file.encoding == .gzip ? Body(compressed: CompressedBody(stored, length: length)) : stored
        }
        return Entry(key: put.key, body: body, source: .pending(put, try descriptions.description(of: put)))
    }
}
