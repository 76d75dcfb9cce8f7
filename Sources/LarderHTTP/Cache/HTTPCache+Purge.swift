import HTTPCaching
import HTTPTypes
import Larder

/// Taking responses out of the cache by hand.
extension HTTPCache {
    /// Removes everything stored for a URL: all methods and variants. Returns how many responses.
    /// Throws ``FetchError/Kind/invalidURL``, and `LarderError` when the store cannot be written.
    @discardableResult
    public func purge(_ url: String) throws -> Int {
        let request = try Self.request(for: url)
        guard let key = rules.cacheKey(for: request) else { return 0 }
        let uri = configuration.keyPolicy.uri(key)
        let scope = scope(of: key, configuration.keyPolicy)
        var count = 0
        for method in [nil] + rules.options.extraMethods.sorted().map(Optional.some) {
            let primary = method.map { "\($0) \(uri)" } ?? uri
            advance(primary, scope)
            count += try shelf.removeAll(primary)
            if configuration.keyPolicy.hasAdditions || method == Self.queryMethod {
                count += try store.remove(.prefix(Key(primary + " ")))
            }
        }
        if let scope { count += try shelf.removeShared(scope) }
        return count
    }

    /// As the synchronous `purge`; the cooperative pool does not wait.
    @discardableResult
    public func purge(_ url: String) async throws -> Int { try await store.performLong { [self] in try purge(url) } }

    /// Removes everything stored for URLs that start with `prefix`, whose scheme and host may be written in any way. A
    /// prefix without a path stands for everything of that host and port: `http://a.example` does not reach
    /// `http://a.example.org`. Returns how many entries. Errors of the store.
    @discardableResult
    public func purge(prefix: String) throws -> Int {
        generations.advanceAll()
        let start = normalized(prefix, endsHost: true)
        var count = 0
        for method in [""] + rules.options.extraMethods.sorted().map({ $0 + " " }) {
            count += try store.remove(.prefix(Key(method + start)))
        }
        // What several queries share stands under the path: where a query is named, all of it goes.
        if start.contains("?") {
            count += try store.remove(.prefix(Key(SearchScope(uri: start).path + " search=")))
        }
        return count
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
        generations.advanceAll()
        return try store.remove(.tag(Self.tag(group: group, origin: normalized(origin))))
    }

    /// As the synchronous `purge`; the cooperative pool does not wait.
    @discardableResult
    public func purge(group: String, origin: String) async throws -> Int {
        try await store.performLong { [self] in try purge(group: group, origin: origin) }
    }

    /// A URL, or the beginning of one, with scheme and host as keys have them.
    private func normalized(_ prefix: String, endsHost: Bool = false) -> String {
        guard let colon = prefix.firstRange(of: "://") else { return prefix }
        let rest = prefix[colon.upperBound...]
        let end = rest.firstIndex { $0 == "/" || $0 == "?" } ?? rest.endIndex
        let request = HTTPRequest(
            method: .get, scheme: String(prefix[..<colon.lowerBound]), authority: String(rest[..<end]), path: "/")
        let target = end == rest.endIndex && endsHost ? "/" : rest[end...]
        return rules.cacheKey(for: request).map { $0.origin + target } ?? prefix
    }

    /// Removes everything stored under a tag; for a cache group the tag is `group`, the origin and the name, with
    /// spaces between. Returns how many entries. Errors of the store.
    @discardableResult
    public func purge(tag: String) throws -> Int {
        generations.advanceAll()
        return try store.remove(.tag(tag))
    }

    /// As the synchronous `purge`; the cooperative pool does not wait.
    @discardableResult
    public func purge(tag: String) async throws -> Int { try await store.performLong { [self] in try purge(tag: tag) } }
}
