import Larder

/// Taking responses out of the cache by hand.
extension HTTPCache {
    /// Removes everything stored for a URL: all methods and variants. Waits for the disk on the calling thread.
    ///
    /// - Parameter url: absolute; compared in the form of keys (RFC 9110 section 4.2.3).
    /// - Returns: the number of responses removed.
    /// - Throws: ``FetchError/Code/invalidURL``, and `LarderError` if the store cannot be written.
    @discardableResult
    public func purge(_ url: String) throws -> Int {
        try changes.purge(Self.request(for: url))
    }

    /// As the synchronous `purge(_:)`; the cooperative pool does not wait. This form also removes responses that are
    /// being stored during the call; the synchronous one removes them a moment after it has returned.
    ///
    /// - Parameter url: absolute; compared in the form of keys (RFC 9110 section 4.2.3).
    /// - Returns: the number of responses removed.
    /// - Throws: ``FetchError/Code/invalidURL``, and `LarderError` if the store cannot be written.
    @discardableResult
    public func purge(_ url: String) async throws -> Int {
        await changes.prepareToPurge(try Self.request(for: url))
        return try await store.performLong { [self] in try purge(url) }
    }

    /// Removes everything stored for URLs that start with a prefix. Waits for the disk on the calling thread, for a
    /// time that grows with the number of entries under the prefix.
    ///
    /// - Parameter prefix: its scheme and host may have any equivalent form. A prefix without a path means everything
    ///   of that host and port: `http://a.example` does not include `http://a.example.org`.
    /// - Returns: the number of entries removed.
    /// - Throws: `LarderError` if the store cannot be read or written.
    @discardableResult
    public func purge(prefix: String) throws -> Int {
        try changes.purge(prefix: prefix)
    }

    /// As the synchronous `purge(prefix:)`; the cooperative pool does not wait. This form also removes responses that
    /// are being stored during the call; the synchronous one removes them a moment after it has returned.
    ///
    /// - Parameter prefix: see there.
    /// - Returns: the number of entries removed.
    /// - Throws: `LarderError` if the store cannot be read or written.
    @discardableResult
    public func purge(prefix: String) async throws -> Int {
        await changes.prepareToPurge(nil)
        return try await store.performLong { [self] in try purge(prefix: prefix) }
    }

    /// Removes everything that belongs to a cache group (RFC 9875). Waits for the disk on the calling thread.
    ///
    /// - Parameters:
    ///   - group: the name of the group in `Cache-Groups`.
    ///   - origin: the origin that the group belongs to, such as `https://example.org`.
    /// - Returns: the number of entries removed: a response that arrived in parts has several.
    /// - Throws: `LarderError` if the store cannot be read or written.
    @discardableResult
    public func purge(group: String, origin: String) throws -> Int {
        try changes.purge(group: group, origin: origin)
    }

    /// As the synchronous `purge(group:origin:)`; the cooperative pool does not wait. This form also removes responses
    /// that are being stored during the call; the synchronous one removes them a moment after it has returned.
    ///
    /// - Parameters:
    ///   - group: the name of the group.
    ///   - origin: the origin that the group belongs to.
    /// - Returns: the number of entries removed.
    /// - Throws: `LarderError` if the store cannot be read or written.
    @discardableResult
    public func purge(group: String, origin: String) async throws -> Int {
        await changes.prepareToPurge(nil)
        return try await store.performLong { [self] in try purge(group: group, origin: origin) }
    }

    /// Removes the selected responses: by date, by use, by size, by policy, combined with `&&`, `||` and `!`. Other
    /// entries in the store stay. Waits for the disk on the calling thread.
    ///
    ///     // What was stored before today and not used since, but nothing that is pinned.
    ///     try cache.purge(.storedBefore(today) && .unusedSince(today) && !.pinned)
    ///
    /// - Parameters:
    ///   - selection: the responses to remove.
    ///   - progress: called from time to time, and at the end. Throw from it to stop; entries already removed stay
    ///     removed.
    /// - Returns: the number of entries removed.
    /// - Throws: `LarderError` if the store cannot be read or written; the errors of `progress`.
    @discardableResult
    public func purge(
        _ selection: Selection, progress: (PurgeProgress) throws -> Void = { _ in }
    ) throws -> Int {
        try changes.purge(selection, progress)
    }

    /// As the synchronous `purge(_:progress:)`; the cooperative pool does not wait. This form also removes responses
    /// that are being stored during the call; the synchronous one removes them a moment after it has returned.
    ///
    /// - Parameters:
    ///   - selection: the responses to remove.
    ///   - progress: called from time to time, and at the end, on another thread. Throw from it to stop.
    /// - Returns: the number of entries removed.
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
    /// - Returns: the number of entries removed.
    /// - Throws: `LarderError` if the store cannot be read or written.
    @discardableResult
    public func purge(tag: String) throws -> Int {
        try changes.purge(tag: tag)
    }

    /// As the synchronous `purge(tag:)`; the cooperative pool does not wait. This form also removes responses that are
    /// being stored during the call; the synchronous one removes them a moment after it has returned.
    ///
    /// - Parameter tag: see there.
    /// - Returns: the number of entries removed.
    /// - Throws: `LarderError` if the store cannot be read or written.
    @discardableResult
    public func purge(tag: String) async throws -> Int {
        await changes.prepareToPurge(nil)
        return try await store.performLong { [self] in try purge(tag: tag) }
    }
}

/// The progress of a removal of selected responses.
public struct PurgeProgress: Sendable, Hashable {
    /// Entries examined.
    public internal(set) var examined: Int
    /// Entries removed.
    public internal(set) var removed: Int
}
