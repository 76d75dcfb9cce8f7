import Larder

/// Taking responses out of the cache by hand.
extension HTTPCache {
    /// Removes everything stored for a URL: all methods and variants. Returns how many responses.
    /// Throws ``FetchError/Code/invalidURL``, and `LarderError` when the store cannot be written.
    @discardableResult
    public func purge(_ url: String) throws -> Int {
        try changes.purge(Self.request(for: url))
    }

    /// As the synchronous `purge`; the cooperative pool does not wait.
    @discardableResult
    public func purge(_ url: String) async throws -> Int { try await store.performLong { [self] in try purge(url) } }

    /// Removes everything stored for URLs that start with `prefix`, whose scheme and host may be written in any way. A
    /// prefix without a path means everything of that host and port: `http://a.example` does not reach
    /// `http://a.example.org`. Returns how many entries. Errors of the store.
    @discardableResult
    public func purge(prefix: String) throws -> Int {
        try changes.purge(prefix: prefix)
    }

    /// As the synchronous `purge`; the cooperative pool does not wait.
    @discardableResult
    public func purge(prefix: String) async throws -> Int {
        try await store.performLong { [self] in try purge(prefix: prefix) }
    }

    /// Removes everything that belongs to a cache group of an origin (RFC 9875), such as `https://example.org`. Returns
    /// how many entries: a response that arrived in parts has several. Errors of the store.
    @discardableResult
    public func purge(group: String, origin: String) throws -> Int {
        try changes.purge(group: group, origin: origin)
    }

    /// As the synchronous `purge`; the cooperative pool does not wait.
    @discardableResult
    public func purge(group: String, origin: String) async throws -> Int {
        try await store.performLong { [self] in try purge(group: group, origin: origin) }
    }

    /// Removes everything stored under a tag; for a cache group the tag is `group`, the origin and the name, with
    /// spaces between. Returns how many entries. Errors of the store.
    @discardableResult
    public func purge(tag: String) throws -> Int {
        try changes.purge(tag: tag)
    }

    /// As the synchronous `purge`; the cooperative pool does not wait.
    @discardableResult
    public func purge(tag: String) async throws -> Int { try await store.performLong { [self] in try purge(tag: tag) } }
}
