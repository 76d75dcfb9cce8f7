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

    /// The keys of the entries that `key` stands for: its own, those of the variants if it is a list of them, and those
    /// of parts.
    static func keys(under key: Key, in store: Store) throws -> [Key] {
        let key = try StoredKeys.resolved(key, in: store)
        guard let entry = try store.attributes(of: key), let all = try StoredVariants(entry, in: store) else {
            return try [key] + parts(of: key, in: store)
        }
        return try [key] + all.variants.flatMap { try [$0.entry.key] + parts(of: $0.entry.key, in: store) }
    }

    /// The keys of the entries that hold parts of the response under a key.
    static func parts(of key: Key, in store: Store) throws -> [Key] {
        try store.keys(.prefix(StoredKeys.partPrefix(of: key)) && (.incomplete || !.incomplete))
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

    /// Removes what an HTTP cache has stored for a URL, as PURGE does.
    /// - Returns: the number of responses removed; 0 if `key` is not a URL.
    static func purge(_ key: Key, from store: Store) throws -> Int {
        let text = String(decoding: key.bytes, as: UTF8.self)
        guard !text.contains(" "), (try? HTTPCache.request(for: text)) != nil else { return 0 }
        return try cache(store).purge(text)
    }

    /// Counts as an access to entries, and sets how long they are fresh: that of a response by its own record, as an
    /// HTTP cache goes by that. The list of a URL's variants stays at least as long as each of them.
    /// - Returns: how many of them there are.
    @discardableResult
    static func touch(_ keys: [Key], _ lifetime: Lifetime?, in store: Store) throws -> Int {
        var count = 0
        var lists: [Key: Timestamp?] = [:]
        for key in keys {
            guard let entry = try store.attributes(of: key) else { continue }
            // The parts of a response stay as long as that.
            if StoredKeys.isList(entry) || StoredKeys.isPart(entry) {
                if try store.touch(key) { count += 1 }
                continue
            }
            guard let duration = lifetime?.duration, let response = ResponseSummary(entry) else {
                if try store.touch(key, lifetime: lifetime) { count += 1 }
                continue
            }
            if try Blocking.run({ try await cache(store).setFreshness(duration, ofKey: key) }) { count += 1 }
            try store.touch(key)
            guard response.primaryKey != key, let end = try store.attributes(of: key) else { continue }
            // Nil: it never goes.
            if let known = lists[response.primaryKey], known == nil { continue }
            let latest = (lists[response.primaryKey] ?? end.expires).flatMap { old in end.expires.map { max(old, $0) } }
            lists.updateValue(latest, forKey: response.primaryKey)
        }
        for (list, end) in lists {
            guard let old = try store.attributes(of: list)?.expires else { continue }
            if end.map({ $0 > old }) ?? true { try store.touch(list, lifetime: end.map { .until($0) } ?? .never) }
        }
        return count
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

extension Attributes {
    /// The size that a list shows: the bytes of a response in parts are in entries of their own.
    /// - Parameter countingParts: false where those entries are in the list, too.
    func shownSize(countingParts: Bool = true) -> ByteCount {
        guard countingParts, let stored = ResponseSummary(self)?.storedBytes else { return length }
        return ByteCount(stored)
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
