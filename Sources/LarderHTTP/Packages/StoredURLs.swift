import HTTPCaching
import Larder

/// What is stored under URLs themselves, beside members of packages.
package struct StoredURLs {
    private let responses: ResponseStore

    package init(_ store: Store, _ rules: CacheRules) {
        responses = ResponseStore(
            store: store, rules: rules, retention: HTTPCacheConfiguration().retention, now: { Instant(milliseconds: 0) }
        )
    }

    /// Removes everything stored under keys of URLs before a moment. May wait.
    package func remove(_ keys: [Key], before moment: Instant) throws {
        for (key, entry) in zip(keys, try responses.store.get(keys, includingExpired: true)) {
            guard let entry else { continue }
            if let record = StoredRecord(entry.metadata), record.response.responseTime >= moment { continue }
            _ = try responses.removeListed(key.text)
        }
    }

    /// Adds a member's response to a batch as if it had come over the network, unless there is one.
    package func put(_ member: Attributes, for key: Key, _ batch: inout WriteBatch) {
        guard let record = StoredRecord(member.metadata) else { return }
        batch.put(
            contentOf: member.digest, for: key,
            responses.options(for: record.response, tags: [], storagePolicy: member.storagePolicy), unlessPresent: true)
    }
}
