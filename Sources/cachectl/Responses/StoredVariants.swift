import CachectlCore
import HTTPTypes
import Larder
import LarderHTTP

/// The stored variants of a URL (RFC 9111 section 4.1).
struct StoredVariants {
    /// One variant.
    struct Variant {
        /// Its place in the list, starting at 1.
        let number: Int
        let entry: Attributes
        let response: ResponseSummary

        /// The request fields that select it: `accept-language: de`.
        var text: String { response.variant.isEmpty ? "any request" : response.variant.joined(separator: ", ") }
    }

    let key: Key
    let variants: [Variant]

    /// Reads the variants that are still stored; nil unless `entry` is the list of a URL's variants.
    init?(_ entry: Attributes, in store: Store) throws {
        guard let list = VariantList(entry) else { return nil }
        key = entry.key
        var found: [Variant] = []
        for (index, key) in list.keys.enumerated() {
            guard let entry = try store.attributes(of: key), let response = ResponseSummary(entry) else { continue }
            found.append(Variant(number: index + 1, entry: entry, response: response))
        }
        variants = found
    }

    /// The keys of the entries that `key` stands for: its own, and those of the variants if it is a list of them.
    static func keys(under key: Key, in store: Store) throws -> [Key] {
        let key = try StoredKeys.resolved(key, in: store)
        guard let entry = try store.attributes(of: key), let all = try StoredVariants(entry, in: store) else {
            return [key]
        }
        return [key] + all.variants.map(\.entry.key)
    }

    /// Removes every variant of a URL, including those that are in no list, and the list.
    /// - Returns: the number of variants removed; nil if `key` has neither a list nor variants.
    static func removeAll(under key: Key, from store: Store) throws -> Int? {
        let isList = try store.attributes(of: key).map { VariantList($0) != nil } ?? false
        var keys: [Key] = []
        try store.forEach(.prefix(VariantList.prefix(of: key))) { entry in
            if ResponseSummary(entry)?.primaryKey == key { keys.append(entry.key) }
        }
        guard isList || !keys.isEmpty else { return nil }
        var count = 0
        for key in keys where try store.remove(key) { count += 1 }
        // Last: until then the list leads to the variants that are left.
        if isList { try store.remove(key) }
        return count
    }

    /// Removes the list of a URL's variants if it leads to none any more.
    static func removeListIfEmpty(_ key: Key, _ store: Store) throws {
        guard let list = try store.attributes(of: key), let variants = try StoredVariants(list, in: store),
            variants.variants.isEmpty
        else { return }
        try store.remove(key)
    }

    /// Removes the parts of a response that is gone.
    static func removeParts(of key: Key, _ store: Store) throws {
        try store.remove(.prefix(StoredKeys.partPrefix(of: key)))
    }

    /// Removes what an HTTP cache has stored for a URL, as PURGE does.
    /// - Returns: the number of responses removed; 0 if `key` is not a URL.
    static func purge(_ key: Key, from store: Store) throws -> Int {
        let text = String(decoding: key.bytes, as: UTF8.self)
        guard !text.contains(" "), (try? HTTPCache.request(for: text)) != nil else { return 0 }
        return try cache(store).purge(text)
    }

    /// Sets how long an entry is fresh: that of a response by its own record, as an HTTP cache goes by that.
    /// - Returns: false if there is no entry under `key`.
    static func touch(_ key: Key, _ lifetime: Lifetime?, in store: Store) throws -> Bool {
        guard let duration = lifetime?.duration, let entry = try store.attributes(of: key),
            ResponseSummary(entry) != nil
        else { return try store.touch(key, lifetime: lifetime) }
        let isThere = try Blocking.run { try await cache(store).setFreshness(duration, ofKey: key) }
        return try store.touch(key) || isThere
    }

    /// A cache for work on what is stored.
    private static func cache(_ store: Store) -> HTTPCache {
        var configuration = HTTPCacheConfiguration()
        configuration.caching = .gateway
        return HTTPCache(store: store, transport: NoTransport(), configuration: configuration)
    }

    /// Never connects: for work on stored responses.
    private struct NoTransport: Transport {
        func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
            throw TransportError(.cannotConnect, mayHaveBeenSeen: false, "cachectl does not load here")
        }
    }
}

extension Lifetime {
    /// From now on; nil for one that is not given so.
    fileprivate var duration: Duration? {
        switch self {
        case .duration(let duration): duration
        case .never: .seconds(Int64.max)
        case .standard, .until: nil
        }
    }
}
