import Larder

/// Taking responses out of the cache by hand.
extension HTTPCache {
    /// Removes everything stored for a URL: all methods and variants. Waits for the disk on the calling thread.
    ///
    /// - Parameter url: absolute; compared in the form that keys have (RFC 9110 section 4.2.3).
    /// - Returns: how many responses were removed.
    /// - Throws: ``FetchError/Code/invalidURL``, and `LarderError` when the store cannot be written.
    @discardableResult
    public func purge(_ url: String) throws -> Int {
        try changes.purge(Self.request(for: url))
    }

    /// As the synchronous `purge(_:)`; the cooperative pool does not wait. What is being stored
    /// when it is called is removed, too: the synchronous one removes that a moment after it has returned.
    ///
    /// - Parameter url: absolute; compared in the form that keys have (RFC 9110 section 4.2.3).
    /// - Returns: how many responses were removed.
    /// - Throws: ``FetchError/Code/invalidURL``, and `LarderError` when the store cannot be written.
    @discardableResult
    public func purge(_ url: String) async throws -> Int {
        await changes.prepareToPurge(try Self.request(for: url))
        return try await store.performLong { [self] in try purge(url) }
    }

    /// Removes everything stored for URLs that start with a prefix. Waits for the disk on the calling thread, for a
    /// time that grows with the number of entries under the prefix.
    ///
    /// - Parameter prefix: its scheme and host may be written in any way. A prefix without a path means everything of
    ///   that host and port: `http://a.example` does not reach `http://a.example.org`.
    /// - Returns: how many entries were removed.
    /// - Throws: `LarderError` when the store cannot be read or written.
    @discardableResult
    public func purge(prefix: String) throws -> Int {
        try changes.purge(prefix: prefix)
    }

    /// As the synchronous `purge(prefix:)`; the cooperative pool does not wait. What is being stored
    /// when it is called is removed, too: the synchronous one removes that a moment after it has returned.
    ///
    /// - Parameter prefix: see there.
    /// - Returns: how many entries were removed.
    /// - Throws: `LarderError` when the store cannot be read or written.
    @discardableResult
    public func purge(prefix: String) async throws -> Int {
        await changes.prepareToPurge(nil)
        return try await store.performLong { [self] in try purge(prefix: prefix) }
    }

    /// Removes everything that belongs to a cache group (RFC 9875). Waits for the disk on the calling thread.
    ///
    /// - Parameters:
    ///   - group: the name of the group, as `Cache-Groups` gives it.
    ///   - origin: the origin that the group belongs to, such as `https://example.org`.
    /// - Returns: how many entries were removed: a response that arrived in parts has several.
    /// - Throws: `LarderError` when the store cannot be read or written.
    @discardableResult
    public func purge(group: String, origin: String) throws -> Int {
        try changes.purge(group: group, origin: origin)
    }

    /// As the synchronous `purge(group:origin:)`; the cooperative pool does not wait. What is being stored
    /// when it is called is removed, too: the synchronous one removes that a moment after it has returned.
    ///
    /// - Parameters:
    ///   - group: the name of the group.
    ///   - origin: the origin that the group belongs to.
    /// - Returns: how many entries were removed.
    /// - Throws: `LarderError` when the store cannot be read or written.
    @discardableResult
    public func purge(group: String, origin: String) async throws -> Int {
        await changes.prepareToPurge(nil)
        return try await store.performLong { [self] in try purge(group: group, origin: origin) }
    }

    /// Removes the stored responses that a selection finds: by date, by use, by size, by policy, combined with `&&`,
    /// `||` and `!`. Entries of others in the store stay. Waits for the disk on the calling thread.
    ///
    ///     // What was stored before today and not used since, but nothing that is pinned.
    ///     try cache.purge(.storedBefore(today) && .unusedSince(today) && !.pinned)
    ///
    /// - Parameters:
    ///   - selection: which of them.
    ///   - progress: called now and then, and at the end. Throw from it to stop; what was removed stays removed.
    /// - Returns: how many entries were removed.
    /// - Throws: `LarderError` when the store cannot be read or written; what `progress` throws.
    @discardableResult
    public func purge(
        _ selection: Selection, progress: (PurgeProgress) throws -> Void = { _ in }
    ) throws -> Int {
        try changes.purge(selection, progress)
    }

    /// As the synchronous `purge(_:progress:)`; the cooperative pool does not wait. What is being stored
    /// when it is called is removed, too: the synchronous one removes that a moment after it has returned.
    ///
    /// - Parameters:
    ///   - selection: which responses.
    ///   - progress: called now and then, and at the end, on another thread. Throw from it to stop.
    /// - Returns: how many entries were removed.
    /// - Throws: as the synchronous form.
    @discardableResult
    public func purge(
        _ selection: Selection, progress: @escaping @Sendable (PurgeProgress) throws -> Void = { _ in }
    ) async throws -> Int {
        await changes.prepareToPurge(nil)
        return try await store.performLong { [self] in try purge(selection, progress: progress) }
    }

    /// Removes everything stored under a tag. Waits for the disk on the calling thread.
    ///
    /// - Parameter tag: for a cache group the tag is `group`, the origin and the name, with spaces between.
    /// - Returns: how many entries were removed.
    /// - Throws: `LarderError` when the store cannot be read or written.
    @discardableResult
    public func purge(tag: String) throws -> Int {
        try changes.purge(tag: tag)
    }

    /// As the synchronous `purge(tag:)`; the cooperative pool does not wait. What is being stored
    /// when it is called is removed, too: the synchronous one removes that a moment after it has returned.
    ///
    /// - Parameter tag: see there.
    /// - Returns: how many entries were removed.
    /// - Throws: `LarderError` when the store cannot be read or written.
    @discardableResult
    public func purge(tag: String) async throws -> Int {
        await changes.prepareToPurge(nil)
        return try await store.performLong { [self] in try purge(tag: tag) }
    }
}

/// How far a removal of selected responses has come.
public struct PurgeProgress: Sendable, Hashable {
    /// Entries looked at.
    public internal(set) var examined: Int
    /// Entries removed.
    public internal(set) var removed: Int
}
