import HTTPCaching
import Larder
import Locks

/// The parts in progress that loads of this cache write. Safe from any thread; what opens and ends a part waits for the
/// store.
///
/// Several loads may write to one part at a time, and the last that leaves it suspends it. A part that another process
/// writes, or another cache of this process, is not opened: the load begins one of its own, so that nothing waits.
final class PartWriters: Sendable {
    /// What a part has the bytes of.
    struct Content: Sendable {
        /// As it would be stored.
        let response: StoredResponse
        /// The length of the representation; nil if it is not known: then no other load writes to the part.
        let total: Int64?
        /// Whether nothing was invalidated since the response was asked for.
        let isCurrent: @Sendable () -> Bool
    }

    /// A part that is open.
    final class Part: Sendable {
        let id: UInt64
        let writer: PartialWriter
        fileprivate let content: Content
        private let options: Mutex<PutOptions>
        private let over = Atomic(false)

        fileprivate init(id: UInt64, writer: PartialWriter, _ content: Content, _ options: PutOptions) {
            self.id = id
            self.writer = writer
            self.content = content
            self.options = Mutex(options)
        }

        /// Adds the tags of another load that writes to it, so that a purge by one of them reaches it. Call it under
        /// the lock of the response.
        fileprivate func add(_ tags: [String]) throws {
            // Nothing more is written to a whole one, and its writer is busy while it computes the digest.
            if writer.isComplete { return }
            var new = options.withLock { $0 }
            guard let all = ResponseTags.union(new.tags, tags), all != new.tags else { return }
            new.tags = all
            do {
                try writer.use(new)
                options.withLock { [new] in $0 = new }
            } catch let error as LarderError where error.code == .gone || error.code == .closed {
                end()
            }
        }

        /// Whether nothing more can be written: it was completed, or the store has removed it.
        var isOver: Bool { over.load(ordering: .acquiring) }

        func end() { over.store(true, ordering: .releasing) }

        /// Writes bytes at their position; what is there already stays.
        func write(_ bytes: [UInt8], at position: Int64) throws {
            let range = position..<(position + Int64(bytes.count))
            // The writer is busy for as long as it takes to compute the digest of the whole: that is not waited for.
            if has(range) { return }
            do {
                try writer.write(bytes, at: position)
            } catch let error as LarderError where error.code == .gone || error.code == .closed {
                end()
                // Others may have completed it.
                guard has(range) else { throw error }
            }
        }

        private func has(_ range: Range<Int64>) -> Bool {
            writer.ranges.contains { $0.clamped(to: range) == range }
        }
    }

    private let store: Store
    /// The open parts of each response, and how many loads write each of them.
    private let open = Mutex<[Key: [(part: Part, users: Int)]]>([:])
    /// Held while a part of a response is opened or left, by the key of the response.
    private let locks = (0..<64).map { _ in StripedLock() }

    init(_ store: Store) { self.store = store }

    /// A part for the bytes of a response: one that others write, one that the store lists and nothing writes, or a new
    /// one. Pair it with `release(_:of:isListed:)`.
    ///
    /// - Parameters:
    ///   - range: the positions of the bytes.
    ///   - content: what the bytes belong to.
    ///   - key: what the response is stored under.
    ///   - listed: the parts of the stored response and its entry, if that is of the same representation.
    ///   - options: what a part is stored with; one that is there keeps its tags, and at least its lifetime.
    func acquire(
        for range: Range<Int64>, _ content: Content, at key: Key, _ rules: CacheRules,
        listed: () throws -> (parts: [StoredPart], entry: Attributes)?, _ options: PutOptions
    ) throws -> Part {
        try lock(key).locked {
            // Its bytes may be those that an invalidation was for, and bytes that are written stay.
            guard content.isCurrent() else { throw InvalidatedLoad() }
            let shared = join(key) { part in
                content.total != nil && part.content.isCurrent() && part.content.total == content.total
                    && rules.areCombinable(part.content.response, content.response)
            }
            if let shared {
                do {
                    try shared.add(options.tags)
                } catch {
                    _ = leave(shared, key)
                    throw error
                }
                return shared
            }
            let listed = try content.total == nil ? nil : listed()
            let options = listed.map { options.extending($0.entry) } ?? options
            // One with very many ranges might get too many.
            for part in listed?.parts ?? [] {
                let count = part.ranges.union(ByteRanges([range])).ranges.count
                guard count <= max(StoredPart.rangeLimit / 2, part.ranges.ranges.count) else { continue }
                guard content.isCurrent() else { throw InvalidatedLoad() }
                if let part = try resume(part.id, content, at: key, options) { return part }
            }
            let id = UInt64.random(in: .min ... .max)
            let total = content.total.map { ByteCount($0) }
            return enter(
                Part(
                    id: id, writer: try store.partialWriter(for: StoredPart.key(key, id), options, total: total),
                    content, options),
                key)
        }
    }

    /// The part with an id, to complete it; nil if it is not in progress, or is written elsewhere. Pair it with
    /// `release(_:of:isListed:)`.
    func acquire(_ id: UInt64, _ content: Content, at key: Key, _ options: PutOptions) throws -> Part? {
        try lock(key).locked { try join(key) { $0.id == id } ?? resume(id, content, at: key, options) }
    }

    /// A load no longer writes a part. The last one leaves it to later loads, or removes it if no record lists it.
    func release(_ part: Part, of key: Key, isListed: () throws -> Bool) throws {
        try lock(key).locked {
            guard leave(part, key), !part.isOver else { return }
            part.end()
            do {
                if try isListed() { try part.writer.suspend() } else { part.writer.cancel() }
            } catch let error as LarderError where error.code == .gone || error.code == .closed {
                // It was removed with its response, or the store is closed, which suspends it.
            }
        }
    }

    private func join(_ key: Key, _ isMeant: (Part) -> Bool) -> Part? {
        open.withLock { open in
            guard let index = open[key]?.firstIndex(where: { !$0.part.isOver && isMeant($0.part) }) else { return nil }
            open[key]![index].users += 1
            return open[key]![index].part
        }
    }

    /// One user less; returns whether it was the last.
    private func leave(_ part: Part, _ key: Key) -> Bool {
        open.withLock { open in
            guard var parts = open[key], let index = parts.firstIndex(where: { $0.part === part }) else {
                return false
            }
            parts[index].users -= 1
            let isLast = parts[index].users == 0
            if isLast { parts.remove(at: index) }
            open[key] = parts.isEmpty ? nil : parts
            return isLast
        }
    }

    private func enter(_ part: Part, _ key: Key) -> Part {
        open.withLock { $0[key, default: []].append((part, 1)) }
        return part
    }

    /// Takes over what a writer has left.
    private func resume(_ id: UInt64, _ content: Content, at key: Key, _ options: PutOptions) throws -> Part? {
        let partKey = StoredPart.key(key, id)
        // Where there is none, or one of another length, the writer would begin a new one.
        guard let body = try store.partialBody(of: partKey), !body.isBeingWritten,
            StoredPart.isPlaced(body.metadata), let total = body.total, total.bytes == content.total
        else { return nil }
        do {
            let writer = try store.partialWriter(for: partKey, options, total: total)
            return enter(Part(id: id, writer: writer, content, options), key)
        } catch let error as LarderError where error.code == .locked {
            return nil
        }
    }

    private func lock(_ key: Key) -> StripedLock { locks[abs(key.hashValue % locks.count)] }
}

/// What a load brings was invalidated since it was asked for.
struct InvalidatedLoad: Error {}
