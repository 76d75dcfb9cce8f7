extension Store {
    /// The entry under `key`; computed and stored first if there is none that is fresh.
    ///
    ///     let answer = try await store.value(for: key) { key in
    ///         Computed(try await model.answer(key.text), PutOptions(lifetime: .duration(.seconds(3600))))
    ///     }
    ///
    /// However many callers of this process ask, the value is computed once; all of them get it, or the error of the
    /// computation, which is not stored. Between processes the one that computes holds a claim on the key, and the
    /// others do as `ReadThroughOptions.others` says; the claim of a process that died is worth nothing.
    ///
    /// A cancelled caller gets `CancellationError` and leaves the others alone. When the last caller has gone, the
    /// computation is cancelled.
    ///
    /// A value that cannot be stored, as it is too large or the disk is full, is returned all the same, and the log
    /// tells why it was not stored.
    /// - Parameters:
    ///   - key: what to look up.
    ///   - options: what other processes do meanwhile, and whether a stale value will do.
    ///   - compute: makes the value; called at most once at a time for a key. It must not ask for the same key.
    /// - Returns: the entry; nil if the computation said that there is nothing, now or within the time it gave.
    /// - Throws: `invalidArgument`, `tooLarge` (the key), `closed`, `readOnly` (a miss in a read-only store), `io`,
    ///   `corruption`, `CancellationError`, and what `compute` throws.
    public func value(
        for key: Key, _ options: ReadThroughOptions = ReadThroughOptions(),
        orStore compute: @escaping @Sendable (Key) async throws -> Computed
    ) async throws -> Entry? {
        try key.validate()
        try Task.checkCancellation()
        if let found = try await get(key, includingExpired: options.staleFor != nil) {
            guard let staleFor = options.staleFor, let expires = found.attributes.expires else {
                return found.valueOrNothing
            }
            let now = engine.clock.now()
            if expires > now { return found.valueOrNothing }
            if now < expires + staleFor, !found.isNothing {
                // A read-only store has no way to refresh it.
                if engine.writing != nil { _ = try flight(for: key, options, isBackground: true, compute) }
                return found
            }
        }
        _ = try writing()
        return try await flight(for: key, options, isBackground: false, compute).join()
    }

    /// The computation of a key that is under way, or a new one.
    private func flight(
        for key: Key, _ options: ReadThroughOptions, isBackground: Bool,
        _ compute: @escaping @Sendable (Key) async throws -> Computed
    ) throws -> Computation {
        let place = Computations.Place(key: key, version: version)
        return engine.computations.enter(place, isBackground: isBackground) { [self] in
            try await computeAndStore(key, options, isRefreshing: isBackground, compute)
        }
    }

    private func computeAndStore(
        _ key: Key, _ options: ReadThroughOptions, isRefreshing: Bool,
        _ compute: @Sendable (Key) async throws -> Computed
    ) async throws -> Entry? {
        var claim: [UInt8]?
        switch try await takeClaim(key, options, isRefreshing: isRefreshing) {
        case .taken(let row): claim = row
        case .found(let entry): return entry.valueOrNothing
        case .left: break
        }
        do {
            // Another process, or an earlier computation, may have stored it between the lookup and the claim.
            if !isRefreshing, let found = try await get(key) {
                await release(claim)
                return found.valueOrNothing
            }
            let computed = try await compute(key)
            let entry = try await store(computed, key)
            await release(claim)
            return entry
        } catch {
            await release(claim)
            throw error
        }
    }

    private func store(_ computed: Computed, _ key: Key) async throws -> Entry? {
        do {
            try await put(computed.body, for: key, computed.options)
        } catch let error as LarderError where error.code == .noSpace || error.code == .tooLarge || error.code == .io {
            engine.logger.warning("a computed value is not stored", metadata: ["error": "\(error)", "key": "\(key)"])
        }
        if computed.isNothing { return nil }
        // It may be displaced already, or not stored at all.
        if let stored = try await get(key), stored.digest == Digest.of(computed.body) { return stored }
        let put = makePut(
            key, Digest.of(computed.body), UInt64(computed.body.count), .inline(computed.body), computed.options)
        return Entry(key: key, body: Body(computed.body), source: .pending(put, put.legacy))
    }

    // MARK: Other processes

    private enum Claim {
        case taken(row: [UInt8])
        /// Another process has computed it meanwhile.
        case found(Entry)
        /// Another process computes it, and this one does so, too.
        case left
    }

    private func takeClaim(_ key: Key, _ options: ReadThroughOptions, isRefreshing: Bool) async throws -> Claim {
        let start = ContinuousClock.now
        var pause = Duration.milliseconds(5)
        while true {
            let job = makeJob([.claim(key.bytes, .seconds(24 * 3600))], .relaxed)
            try await engine.run(job)
            if case .leased(let row)? = job.results.first { return .taken(row: row) }
            guard case .wait(let limit) = options.others, ContinuousClock.now - start < limit else { return .left }
            // Nothing tells one process of another's commits, so it looks, ever less often.
            while try await IOPool.shared.run({ [self] in try engine.isClaimedElsewhere(key, version) }) {
                try await Task.sleep(for: pause)
                pause = min(pause * 2, .milliseconds(250))
                if ContinuousClock.now - start >= limit { break }
            }
            if !isRefreshing, let found = try await get(key) { return .found(found) }
        }
    }

    private func release(_ claim: [UInt8]?) async {
        guard let claim else { return }
        let job = makeJob([.endLease(claim)], .relaxed)
        do {
            try await engine.run(job)
        } catch {
            // The next transaction deletes it.
            engine.writing?.leases.release(claim)
        }
    }
}

/// What a computation of `Store.value(for:_:orStore:)` has come to.
public struct Computed: Sendable {
    /// The value.
    public var body: [UInt8]
    /// What to store with it: lifetime, tags, metadata, policy.
    public var options: PutOptions

    /// A value to store.
    /// - Parameters:
    ///   - body: the value; may be empty.
    ///   - options: lifetime, tags, metadata, policy. Default: no tags, and the store's lifetime.
    public init(_ body: [UInt8], _ options: PutOptions = PutOptions()) {
        self.body = body
        self.options = options
    }

    /// There is nothing under the key, and it need not be computed again for `duration`.
    ///
    /// It is stored as an entry without bytes that has the tag `Computed.nothingTag`, which `Store.get` finds like any
    /// other.
    /// - Parameter duration: how long that is remembered.
    public static func nothing(for duration: Duration) -> Computed {
        Computed([], PutOptions(lifetime: .duration(duration), tags: [nothingTag]))
    }

    /// The tag of entries that stand for nothing.
    public static let nothingTag = "larder:nothing"

    var isNothing: Bool { options.tags.contains(Self.nothingTag) }
}

/// How `Store.value(for:_:orStore:)` computes a value.
public struct ReadThroughOptions: Sendable, Hashable {
    /// What a process does while another one computes the value.
    public enum Others: Sendable, Hashable {
        /// Waits for it, but no longer than this; then it computes the value itself.
        case wait(Duration)
        /// Computes the value itself at once.
        case compute
    }

    /// What to do while another process computes the value. Default: wait for 30 seconds.
    public var others: Others
    /// For how long after its expiry a value is returned at once, while it is computed again in the background. Nil
    /// (the default): not at all. A store keeps what has expired for `Configuration.expiredRetention`.
    public var staleFor: Duration?

    /// Options; every one has a default.
    public init(others: Others = .wait(.seconds(30)), staleFor: Duration? = nil) {
        self.others = others
        self.staleFor = staleFor
    }
}

extension Entry {
    fileprivate var isNothing: Bool { attributes.tags.contains(Computed.nothingTag) }

    fileprivate var valueOrNothing: Entry? { isNothing ? nil : self }
}
