import HTTPCaching
import HTTPTypes
import Larder

/// A response on its way into the store.
struct Storing: Sendable {
    let cache: HTTPCache
    let new: NewResponse
    let writer: BodyWriter
    private let key: Key
    private let primary: String
    private let tags: [String]
    private let storagePolicy: StoragePolicy
    private let generation: UInt32
    /// The stored part that the new bytes add to.
    private let existing: Shelf.Found?
    private let replaced: [Shelf.Found]

    /// Nil when the store will not have it: too large, no room, in trouble. The answer goes on without it.
    init?(cache: HTTPCache, pending: PendingLoad, new: NewResponse, found: [Shelf.Found], length: Int64?) async {
        guard let primary = pending.primary else { return nil }
        self.cache = cache
        self.new = new
        self.primary = primary
        storagePolicy = pending.plan.storagePolicy
        generation = pending.generation
        existing = new.combines.map { found[$0] }
        tags = cache.tags(of: new, primary: primary, own: pending.plan.tags)
        do {
            key = try await cache.shelf.key(for: new.selecting, primary: primary)
            replaced = new.replaces.map { found[$0] }.filter { [key] in $0.key != key }
            // Not declared to the writer: a body that is cut off may still be stored as a part.
            writer = try cache.store.writer(for: key, PutOptions(storagePolicy: storagePolicy))
            if let length, existing == nil { try cache.checkRoom(length, key) }
        } catch {
            cache.logRefusal(error, primary)
            return nil
        }
    }

    /// Writes the stored bytes that stand before the new ones; returns how many.
    func writeLeading() async -> Int64 {
        guard let existing else { return 0 }
        let ranges = existing.response.body.available.ranges
        return await copy(ranges.map { $0.clamped(to: 0..<max(0, new.firstPosition)) })
    }

    private func copy(_ ranges: [Range<Int64>]) async -> Int64 {
        guard let existing else { return 0 }
        var count: Int64 = 0
        do {
            for range in ranges where !range.isEmpty {
                guard let offset = existing.response.body.available.storageOffset(of: range.lowerBound) else {
                    continue
                }
                var position = offset
                let end = offset + Int64(range.count)
                while position < end {
                    let bytes = try await existing.entry.body.bytes(of: position..<min(position + 256 * 1024, end))
                    try await writer.write(bytes)
                    position += Int64(bytes.count)
                    count += Int64(bytes.count)
                }
            }
        } catch {
            // A body with a hole in it must not be stored.
            await writer.cancelElsewhere()
            cache.logRefusal(error, primary)
        }
        return count
    }

    /// Ends: stores what came, if it is worth keeping. After it the next request finds it.
    func finish(receivedBytes: Int64, isComplete: Bool) async {
        guard let response = new.finished(receivedBytes: receivedBytes, isComplete: isComplete),
            cache.generations.current(primary) == generation
        else { return await writer.cancelElsewhere() }
        do {
            if let existing {
                let end = new.firstPosition + receivedBytes
                _ = await copy(existing.response.body.available.ranges.map { $0.clamped(to: end..<Int64.max) })
            }
            try writer.use(cache.shelf.options(for: response, tags: tags, storagePolicy: storagePolicy))
            try await writer.commit()
            if key != Key(primary) {
                try await cache.store.perform {
                    try cache.shelf.list(new.selecting, response.policy, at: key, primary: primary)
                }
            }
            for old in replaced { _ = try await cache.shelf.remove(old) }
            cache.watch.succeeded(.write)
            // Invalidated while it was being committed: whoever did that may have looked before it was there.
            if cache.generations.current(primary) != generation {
                _ = try await cache.store.perform { try cache.shelf.removeAll(primary) }
            }
        } catch {
            await writer.cancelElsewhere()
            cache.logRefusal(error, primary)
        }
    }

    /// Gives up; nothing is stored.
    /// - Parameter error: why the store took no more, if that is why.
    func cancel(_ error: (any Error)?) async {
        if let error { cache.logRefusal(error, primary) }
        await writer.cancelElsewhere()
    }
}
