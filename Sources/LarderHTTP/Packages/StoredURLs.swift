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
            if let variants = VariantIndex(entry.metadata)?.variants {
                for variant in variants { try removeOne(VariantIndex.key(key.text, variant), before: moment) }
            } else {
                try removeOne(key, before: moment)
            }
        }
    }

    private func removeOne(_ key: Key, before moment: Instant) throws {
        guard let entry = try responses.store.peek(key) else { return }
        if let record = StoredRecord(entry.metadata), record.response.responseTime >= moment { return }
        try responses.removeOne(key)
    }

    /// Adds a member's response to a batch as if it had come over the network, unless what is stored there is fresh, or
    /// has a later date.
    package func put(_ member: Attributes, for key: Key, at now: Instant, _ batch: inout WriteBatch) throws {
        guard let response = StoredRecord(member.metadata)?.response else { return }
        let options = responses.options(for: response, tags: [], storagePolicy: member.storagePolicy)
        guard let entry = try responses.store.peek(key), let other = StoredRecord(entry.metadata)?.response else {
            batch.put(contentOf: member.digest, for: key, options, unlessPresent: true)
            return
        }
        let isUsed = other.policy.isFresh(at: now) || other.policy.date > response.policy.date
        if !isUsed { batch.put(contentOf: member.digest, replacing: entry, options) }
    }
}
