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
        var count = 0
        for method in [nil] + configuration.caching.extraMethods.sorted().map(Optional.some) {
            let uri = configuration.keyPolicy.uri(key)
            let primary = method.map { "\($0) \(uri)" } ?? uri
            generations.advance(primary)
            count += try shelf.removeAll(primary)
            if configuration.keyPolicy.hasAdditions { count += try store.remove(.prefix(Key(primary + " "))) }
        }
        return count
    }

    /// Removes everything stored for URLs that start with `prefix`. Returns how many entries. Errors of the store.
    @discardableResult
    public func purge(prefix: String) throws -> Int {
        generations.advanceAll()
        return try store.remove(.prefix(Key(prefix)))
    }

    /// Removes everything stored under a tag; for a cache group the tag is `group`, the origin and the name, with spaces
    /// between. Returns how many responses. Errors of the store.
    @discardableResult
    public func purge(tag: String) throws -> Int {
        generations.advanceAll()
        return try store.remove(.tag(tag))
    }
}
