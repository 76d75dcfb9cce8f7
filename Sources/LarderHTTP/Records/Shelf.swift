import HTTPCaching
import Larder
import Synchronization

/// The stored responses of a store, found by primary key.
///
/// A response that does not vary stands under the primary key itself, one that does under a key of its own, with a
/// `VariantIndex` under the primary key. Several processes may use one store: a change applies only to an entry that is
/// still the one that was read; an index that two write at once may lose a variant, which is then fetched again.
final class Shelf: Sendable {
    /// A stored response and its entry.
    struct Found: Sendable {
        let key: Key
        let entry: Entry
        var response: StoredResponse
    }

    let store: Store
    /// How long a response stays after it may last be used without asking the origin, so that it can be validated.
    private let retention: Duration
    private let locks = (0..<64).map { _ in StripedLock() }

    init(store: Store, retention: Duration) {
        self.store = store
        self.retention = retention
    }

    // MARK: Reading

    /// What is stored under a primary key. Damaged or foreign entries count as absent.
    func find(_ primary: String) async throws -> [Found] {
        var search = Search(primary)
        while let key = search.next {
            let entry = try await store.get(key, includingExpired: true)
            search.take(entry, of: key)
        }
        return search.found
    }

    /// As above, waiting on the calling thread.
    func findWaiting(_ primary: String) throws -> [Found] {
        var search = Search(primary)
        while let key = search.next { search.take(try store.get(key, includingExpired: true), of: key) }
        return search.found
    }

    /// As above; nil where the store would have to wait for a disk.
    func findAtOnce(_ primary: String) throws -> [Found]? {
        var search = Search(primary)
        while let key = search.next {
            switch try store.lookUp(key, includingExpired: true) {
            case .hit(let entry): search.take(entry, of: key)
            case .miss: search.take(nil, of: key)
            case .due: return nil
            }
        }
        return search.found
    }

    /// The lookups that a search takes: the primary key, and the variants that it leads to.
    private struct Search {
        private let primary: String
        private var variants: [SelectingFields]?
        private var position = 0
        private(set) var found: [Found] = []

        init(_ primary: String) { self.primary = primary }

        /// What to look up next; nil when everything is found.
        var next: Key? {
            guard let variants else { return Key(primary) }
            return position < variants.count ? VariantIndex.key(primary, variants[position]) : nil
        }

        mutating func take(_ entry: Entry?, of key: Key) {
            let metadata = entry?.metadata ?? []
            let response = entry.flatMap { Shelf.found(key, $0, metadata) }
            guard let variants else {
                variants = response == nil ? VariantIndex(metadata)?.variants ?? [] : []
                if let response { found.append(response) }
                return
            }
            if let response, response.response.selecting == variants[position] { found.append(response) }
            position += 1
        }
    }

    private static func found(_ key: Key, _ entry: Entry, _ metadata: [UInt8]) -> Found? {
        guard let record = StoredRecord(metadata) else { return nil }
        // The body has to be as long as the record says.
        guard entry.body.length.bytes == record.response.body.available.count else { return nil }
        return Found(key: key, entry: entry, response: record.response)
    }

    // MARK: Writing

    /// Where a new response will stand.
    func key(for selecting: SelectingFields, primary: String) async throws -> Key {
        guard selecting.fields.isEmpty else { return VariantIndex.key(primary, selecting) }
        let key = Key(primary)
        let entry = try await store.get(key, includingExpired: true)
        return entry.flatMap { VariantIndex($0.metadata) } == nil ? key : VariantIndex.key(primary, selecting)
    }

    /// What to keep with the body of a response.
    func options(for response: StoredResponse, tags: [String], storagePolicy: StoragePolicy) -> PutOptions {
        PutOptions(
            lifetime: lifetime(of: response.policy), storagePolicy: storagePolicy, tags: tags,
            metadata: StoredRecord(response).encoded)
    }

    /// Makes a response that was just put under `key` findable. May wait.
    func list(_ selecting: SelectingFields, _ policy: StoredPolicy, at key: Key, primary: String) throws {
        let primaryKey = Key(primary)
        guard key != primaryKey else { return }
        try lock(primary).locked {
            var index = try index(primary) ?? VariantIndex()
            let surplus = index.insert(selecting)
            // It goes when no variant can be of use any more; each that is put keeps it for as long as itself.
            try store.put(
                [], for: primaryKey,
                PutOptions(lifetime: try latest(lifetime(of: policy), primaryKey), metadata: index.encoded))
            for variant in surplus { try store.remove(VariantIndex.key(primary, variant)) }
        }
    }

    /// Replaces what is known of a stored response; false if it was replaced or removed meanwhile.
    func update(_ found: Found, to response: StoredResponse) async throws -> Bool {
        try await store.update(
            found.entry, metadata: StoredRecord(response).encoded, lifetime: lifetime(of: response.policy))
    }

    /// Removes a stored response; false if it was replaced or removed meanwhile.
    func remove(_ found: Found) async throws -> Bool { try await store.remove(found.entry) }

    /// Removes every response under a primary key. Returns how many. May wait.
    func removeAll(_ primary: String) throws -> Int {
        let key = Key(primary)
        guard let entry = try store.get(key, includingExpired: true) else { return 0 }
        guard let index = VariantIndex(entry.metadata) else { return try store.remove(key) ? 1 : 0 }
        return try lock(primary).locked {
            var count = 0
            for variant in index.variants where try store.remove(VariantIndex.key(primary, variant)) { count += 1 }
            try store.remove(key)
            return count
        }
    }

    /// The later of a lifetime and the one that an entry has.
    private func latest(_ lifetime: Lifetime, _ key: Key) throws -> Lifetime {
        guard case .until(let end) = lifetime, let old = try store.get(key, includingExpired: true)?.attributes else {
            return lifetime
        }
        guard VariantIndex(old.metadata) != nil else { return lifetime }
        return old.expires.map { .until(max(end, $0)) } ?? .never
    }

    private func index(_ primary: String) throws -> VariantIndex? {
        try store.get(Key(primary), includingExpired: true).flatMap { VariantIndex($0.metadata) }
    }

    /// Until it may not even be served stale, and the retention.
    private func lifetime(of policy: StoredPolicy) -> Lifetime { Self.lifetime(of: policy, retention: retention) }

    static func lifetime(of policy: StoredPolicy, retention: Duration) -> Lifetime {
        let last = max(policy.freshUntil.milliseconds, policy.responseTime.milliseconds)
        let stale = max(0, policy.staleWhileRevalidateSeconds, policy.staleIfErrorSeconds)
        let (moment, isBeyond) = last.multipliedReportingOverflow(by: 1_000)
        if isBeyond { return last > 0 ? .never : .until(Timestamp(microseconds: .min)) }
        return .until(Timestamp(microseconds: moment) + .seconds(stale) + retention)
    }

    private func lock(_ primary: String) -> StripedLock { locks[abs(primary.hashValue % locks.count)] }
}

/// A lock of its own address, so that many can stand in an array.
final class StripedLock: Sendable {
    private let mutex = Mutex(())

    func locked<R>(_ body: () throws -> R) rethrows -> R {
        try mutex.withLock { _ in try body() }
    }
}
