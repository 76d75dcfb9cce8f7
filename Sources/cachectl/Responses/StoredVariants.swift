import HTTPTypes
import Larder
import LarderHTTP

/// The stored responses of a URL that vary (RFC 9111 section 4.1).
struct StoredVariants {
    /// One of them.
    struct Variant {
        /// Its place in the list, from 1.
        let number: Int
        let entry: Attributes
        let response: ResponseSummary

        /// The request fields that select it: `accept-language: de`.
        var text: String { response.variant.isEmpty ? "any request" : response.variant.joined(separator: ", ") }
    }

    let key: Key
    let variants: [Variant]

    /// Reads those that are there; nil unless `entry` is the list of a URL's variants.
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

    /// The entries that stand for what `key` names: its own, and where that is the list of a URL's variants also these.
    static func keys(under key: Key, in store: Store) throws -> [Key] {
        let key = try StoredKeys.resolved(key, in: store)
        guard let entry = try store.attributes(of: key), let all = try StoredVariants(entry, in: store) else {
            return [key]
        }
        return [key] + all.variants.map(\.entry.key)
    }

    /// Removes every response of a URL, those that no list names any more included, and the list.
    /// Returns how many responses; nil if `key` has neither a list nor variants.
    static func removeAll(under key: Key, from store: Store) throws -> Int? {
        let isList = try store.attributes(of: key).map { VariantList($0) != nil } ?? false
        var keys: [Key] = []
        try store.forEach(.prefix(VariantList.prefix(of: key))) { entry in
            if ResponseSummary(entry)?.primaryKey == key { keys.append(entry.key) }
        }
        guard isList || !keys.isEmpty else { return nil }
        var count = 0
        for key in keys where try store.remove(key) { count += 1 }
        // Last: until then the list leads to what is left.
        if isList { try store.remove(key) }
        return count
    }

    /// Removes what an HTTP cache has stored for a URL, as PURGE does. Returns how many responses: none for what is no URL.
    static func purge(_ key: Key, from store: Store) throws -> Int {
        let text = String(decoding: key.bytes, as: UTF8.self)
        guard !text.contains(" "), (try? HTTPCache.request(for: text)) != nil else { return 0 }
        var configuration = HTTPCacheConfiguration()
        configuration.caching = .gateway
        return try HTTPCache(store: store, transport: NoTransport(), configuration: configuration).purge(text)
    }

    /// Connects to no server: for work on what is stored.
    private struct NoTransport: Transport {
        func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
            throw TransportError(.cannotConnect, mayHaveBeenSeen: false, "cachectl does not load here")
        }
    }
}
