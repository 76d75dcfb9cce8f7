import HTTPCaching
import Larder
import Locks

/// The stored responses of a store, found by primary key.
///
/// A response that does not vary is stored under the primary key itself, one that does under its own key, with a
/// `VariantIndex` under the primary key. A response of which only ranges came has its bytes in entries of their own,
/// which its record lists (`StoredPart`). Several processes may use one store: a change applies only to an entry that
/// is still the one that was read; an index that two write at once may lose a variant, which is then fetched again.
final class ResponseStore: Sendable {
    let store: Store
    let rules: CacheRules
    let packages: StoredPackages
    let now: @Sendable () -> Instant
    /// How long a response stays after it may last be used without asking the origin, so that it can be validated.
    private let retention: Duration
    private let compressesBodies: Bool
    private let locks = (0..<64).map { _ in StripedLock() }
    /// Parts in progress that loads of this cache write.
    let writers: PartWriters
    /// Joining the parts of a response, by its key.
    let completions = Turns()
    /// Bytes that were copied to make responses whole.
    let copiedBytes = Atomic<Int64>(0)

    init(
        store: Store, rules: CacheRules, retention: Duration, compressesBodies: Bool = false,
        now: @escaping @Sendable () -> Instant
    ) {
        self.store = store
        packages = StoredPackages(store)
        self.now = now
        self.rules = rules
        self.retention = retention
        self.compressesBodies = compressesBodies
        writers = PartWriters(store)
    }

    // MARK: Writing

    /// Where a new response will be stored.
    func key(for selecting: SelectingFields, primary: String) async throws -> Key {
        guard selecting.fields.isEmpty else { return VariantIndex.key(primary, selecting) }
        let key = Key(primary)
        let entry = try await store.get(key, includingExpired: true)
        return entry.flatMap { VariantIndex($0.metadata) } == nil
            ? key : VariantIndex.key(primary, selecting)
    }

    /// What to keep with the body of a response.
    func options(for response: StoredResponse, tags: [String], storagePolicy: StoragePolicy) -> PutOptions {
        PutOptions(
            lifetime: lifetime(of: response.policy), storagePolicy: storagePolicy, tags: tags,
            metadata: StoredRecord(response).encoded, compression: compression(of: response))
    }

    /// Nil: as the store says.
    private func compression(of response: StoredResponse) -> Compression? {
        guard compressesBodies else { return nil }
        let fields = response.head.headerFields
        guard response.head.status == .ok, !fields.contains(.contentEncoding),
            !response.policy.flags.contains(.noTransform), let type = fields[.contentType]
        else { return .off }
        return .mediaType(type)
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
            for variant in surplus { try removeOne(VariantIndex.key(primary, variant)) }
        }
    }

    /// Replaces what is known of a stored response; false if it was replaced or removed meanwhile.
    /// - Parameter tags: all that its entries have from now on.
    func update(_ found: Found, to response: StoredResponse, tags: [String]) async throws -> Bool {
        if found.package != nil {
            return try await store.performShort { [self] in
                // What has to be validated before it is used may be all there is without a connection.
                try response.isInvalidated ? supersede(found.entry, at: now()) : update(found.entry, to: response)
            }
        }
        let known = found.entry.attributes
        let newTags = tags == known.tags ? nil : tags
        // The tags of an entry in memory do not change.
        if newTags != nil, known.storagePolicy == .memoryOnly { return try await remove(found) }
        // Only the fields are new: the bytes stay where they are.
        var response = response
        response.body = found.own
        let lifetime = lifetime(of: response.policy)
        let metadata = StoredRecord(response, parts: found.parts.map(\.part)).encoded
        // Its parts stay as long, give or take half of the retention.
        let due = found.parts.filter { part in
            switch lifetime {
            case .until(let end): part.expires.map { $0 < end + retention / -2 } ?? part.isInProgress
            case .never: part.expires != nil || part.isInProgress
            case .standard, .duration: false
            }
        }
        if let newTags {
            var batch = WriteBatch()
            batch.update(
                found.entry, EntryChange(metadata: metadata, lifetime: lifetime, tags: newTags).withReservedNames)
            for part in found.parts {
                batch.change(part.part.key(found.key), EntryChange(lifetime: lifetime, tags: newTags).withReservedNames)
            }
            return try await store.write(batch)[0].isSuccess
        }
        if due.isEmpty { return try await store.update(found.entry, metadata: metadata, lifetime: lifetime) }
        var batch = WriteBatch()
        batch.update(found.entry, EntryChange(metadata: metadata, lifetime: lifetime))
        for part in due { batch.change(part.part.key(found.key), EntryChange(lifetime: lifetime)) }
        return try await store.write(batch)[0].isSuccess
    }

    /// Removes a stored response, or lets a member of a package expire; false if it was replaced or removed meanwhile.
    func remove(_ found: Found) async throws -> Bool {
        if found.package != nil {
            return try await store.performShort { [self] in try supersede(found.entry, at: now()) }
        }
        let isRemoved = try await store.remove(found.entry)
        for part in found.parts { try await store.remove(part.part.key(found.key)) }
        return isRemoved
    }

    /// Removes every response under a primary key. Returns how many. May wait.
    ///
    /// With members of packages, and with what no record lists yet: the parts that loads of any process write, and
    /// variants on their way.
    func removeAll(_ primary: String) throws -> Int {
        let count = try removeListed(primary) + removeMembers(primary)
        for mark in [StoredPart.separator, VariantIndex.separator] {
            let rest = Selection.prefix(Key(primary + mark))
            if try store.hasCommitted(rest) { try store.remove(rest) }
        }
        return count
    }

    func removeListed(_ primary: String) throws -> Int {
        let key = Key(primary)
        guard let entry = try store.get(key, includingExpired: true) else { return 0 }
        guard let index = VariantIndex(entry.metadata) else {
            return try removeOne(key) ? 1 : 0
        }
        return try lock(primary).locked {
            var count = 0
            for variant in index.variants where try removeOne(VariantIndex.key(primary, variant)) { count += 1 }
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
        try store.get(Key(primary), includingExpired: true).flatMap {
            VariantIndex($0.metadata)
        }
    }

    /// Until it may not even be served stale, and the retention.
    func lifetime(of policy: StoredPolicy) -> Lifetime { Self.lifetime(of: policy, retention: retention) }

    static func lifetime(of policy: StoredPolicy, retention: Duration) -> Lifetime {
        let last = max(policy.freshUntil.milliseconds, policy.responseTime.milliseconds)
        let stale = max(0, policy.staleWhileRevalidateSeconds, policy.staleIfErrorSeconds)
        let (moment, isBeyond) = last.multipliedReportingOverflow(by: 1_000)
        if isBeyond { return last > 0 ? .never : .until(Timestamp(microseconds: .min)) }
        return .until(Timestamp(microseconds: moment) + .seconds(stale) + retention)
    }

    func lock(_ primary: String) -> StripedLock { locks[abs(primary.hashValue % locks.count)] }
}

/// A lock with its own address, so that many can be kept in an array.
final class StripedLock: Sendable {
    private let mutex = Mutex(())

    func locked<R>(_ body: () throws -> R) rethrows -> R {
        try mutex.withLock { _ in try body() }
    }
}
