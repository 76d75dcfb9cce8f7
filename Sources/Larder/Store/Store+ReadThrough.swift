extension Store {
    /// The entry under `key`; computed and stored first if there is none that is fresh.
    ///
    ///     let answer = try await store.value(for: key) { key in
    ///         Computed(try await model.answer(key.text).utf8, PutOptions(lifetime: .duration(.seconds(3600))))
    ///     }
    ///
    /// However many callers of this process ask, the value is computed once; all of them get it, or the error of the
    /// computation, which is not stored. Between processes the one that computes holds a claim on the key, and the
    /// others do as `ReadThroughOptions.others` says; the claim of a process that died is worth nothing.
    ///
    /// A cancelled caller gets `CancellationError` and leaves the others alone. When the last caller has gone, the
    /// computation is cancelled. A value that it returns in spite of that is not stored.
    ///
    /// A value that cannot be stored, as it is too large, the disk is full or the store is damaged, is returned all the
    /// same, and the log tells why it was not stored.
    ///
    /// With `ReadThroughOptions.staleFor` a value may be refreshed in the background. The log tells of a refresh that
    /// failed, and for five seconds after it the key is not refreshed again. A refresh that takes long is not cancelled
    /// unless callers have waited for it and the last one has left.
    /// - Parameters:
    ///   - key: what to look up.
    ///   - options: what other processes do meanwhile, and whether a stale value will do.
    ///   - compute: makes the value; called at most once at a time for a key. It may ask for other keys, but for none
    ///     whose computation waits for this one: it gets `invalidArgument` then. That is noticed in the task that runs
    ///     it, in children of that task and in tasks they make, not in detached ones.
    /// - Returns: the entry; nil if the computation said that there is nothing, now or within the time it gave.
    /// - Throws: `invalidArgument`, `tooLarge` (the key), `closed`, `readOnly` (a miss in a read-only store), `io`,
    ///   `corruption`, `CancellationError`, and what `compute` throws.
    public func value(
        for key: Key, _ options: ReadThroughOptions = ReadThroughOptions(),
        orStore compute: @escaping @Sendable (Key) async throws -> Computed
    ) async throws -> Entry? {
        try key.validate()
        try ReservedNames.refuse(key)
        try Task.checkCancellation()
        if let found = try await get(key, includingExpired: options.staleFor != nil) {
            guard let staleFor = options.staleFor, let expires = found.attributes.expires else {
                return found.valueOrNothing
            }
            let now = engine.clock.now()
            if expires > now { return found.valueOrNothing }
            if now < expires + staleFor, !found.isNothing {
                // A read-only store has no way to refresh it.
                if engine.writing != nil { refresh(key, options, compute) }
                return found
            }
        }
        _ = try writing()
        let place = Computations.Place(key: key, version: version)
        let computation = engine.computations.enter(place, isBackground: false) { [self] computation in
            try await computeAndStore(key, options, computation, compute)
        }
        return try await computation.join()
    }

    private func refresh(
        _ key: Key, _ options: ReadThroughOptions, _ compute: @escaping @Sendable (Key) async throws -> Computed
    ) {
        let engine = engine
        engine.computations.refresh(
            Computations.Place(key: key, version: version),
            uptime: { engine.configuration.clock.uptime() },
            failed: { error in
                engine.logger(.calls).warning(
                    "a stale value is not refreshed", metadata: ["error": "\(error)", "key": "\(key)"])
            },
            { [self] in try await computeAndStore(key, options, $0, compute) })
    }

    private func computeAndStore(
        _ key: Key, _ options: ReadThroughOptions, _ computation: Computation,
        _ compute: @Sendable (Key) async throws -> Computed
    ) async throws -> Entry? {
        var claim: [UInt8]?
        switch try await takeClaim(key, options) {
        case .taken(let row): claim = row
        case .found(let entry): return entry.valueOrNothing
        case .left: break
        }
        do {
            // Another process, or an earlier computation, may have stored it between the lookup and the claim: a fresh
            // one, of course, in place of a stale one.
            if let found = try await quietGet(key) {
                await release(claim)
                return found.valueOrNothing
            }
            let computed = try await compute(key)
            guard computation.beginStoring() else { throw CancellationError() }
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
            if computed.isNothing { return nil }
            // It may be displaced already.
            if let stored = try await quietGet(key), stored.digest == Digest.of(computed.body) { return stored }
        } catch let error as LarderError where error.code != .invalidArgument && error.code != .closed {
            engine.logger(.calls).warning(
                "a computed value is not stored", metadata: ["error": "\(error)", "key": "\(key)"])
        }
        if computed.isNothing { return nil }
        let put = makePut(
            key, Digest.of(computed.body), UInt64(computed.body.count), .inline(computed.body), computed.options)
        return Entry(key: key, body: Body(computed.body), source: .pending(put, put.legacy))
    }

    // MARK: Other processes

    private enum Claim {
        case taken(row: [UInt8])
        /// Another process has computed it meanwhile.
        case found(Entry)
        /// Another process computes it, or there was no room for a claim: this one computes it, too.
        case left
    }

    private func takeClaim(_ key: Key, _ options: ReadThroughOptions) async throws -> Claim {
        let start = ContinuousClock.now
        var pause = Duration.milliseconds(5)
        while true {
            let job = PendingJob([computation(of: key, version: version)], isDurable: false)
            do {
                try await engine.run(job)
            } catch let error as LarderError where error.code != .closed {
                // Without a claim others may compute the value, too; without the value this caller has nothing.
                engine.logger(.calls).info("a claim is not written", metadata: ["error": "\(error)", "key": "\(key)"])
                return .left
            }
            if case .leased(let row)? = job.outcomes.first { return .taken(row: row) }
            guard case .wait(let limit) = options.others, ContinuousClock.now - start < limit else { return .left }
            // Nothing tells one process of another's commits, so it looks, ever less often.
            while try await IOPool.shared.run({ [self] in try isClaimed(key) }) {
                try await Task.sleep(for: pause)
                pause = min(pause * 2, .milliseconds(250))
                if ContinuousClock.now - start >= limit { break }
            }
            if let found = try await quietGet(key) { return .found(found) }
        }
    }

    func release(_ claim: [UInt8]?) async {
        guard let claim else { return }
        let job = PendingJob([.endLease(claim)], isDurable: false)
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
    ///   - body: the value, of any collection; may be empty. An array is kept without a copy, others are copied.
    ///   - options: lifetime, tags, metadata, policy. Default: no tags, and the store's lifetime.
    public init(_ body: some Collection<UInt8>, _ options: PutOptions = PutOptions()) {
        self.body = Array(body)
        self.options = options
    }

    /// A value to store, copied from a span.
    /// - Parameters:
    ///   - body: the value; may be empty.
    ///   - options: lifetime, tags, metadata, policy. Default: no tags, and the store's lifetime.
    public init(_ body: RawSpan, _ options: PutOptions = PutOptions()) {
        self.init(body.withUnsafeBytes { Array($0) }, options)
    }

    /// There is nothing under the key, and it need not be computed again for `duration`.
    ///
    /// It is stored as an entry without bytes that has the tag `Computed.nothingTag`, which `Store.get` finds like any
    /// other.
    /// - Parameter duration: how long that is remembered.
    public static func nothing(for duration: Duration) -> Computed {
        Computed([], PutOptions(lifetime: .duration(duration), tags: [nothingTag]).withReservedNames)
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
    /// (the default): not at all. A store keeps what has expired for `Configuration.expiredRetention`. One process at a
    /// time computes it, and those that wait for that take its value, as for a miss.
    public var staleFor: Duration?

    /// Options; every one has a default.
    /// - Parameters:
    ///   - others: what to do while another process computes the value. Default: wait for 30 seconds.
    ///   - staleFor: for how long after its expiry a value is returned at once, while it is computed again. Nil (the
    ///     default): not at all.
    public init(others: Others = .wait(.seconds(30)), staleFor: Duration? = nil) {
        self.others = others
        self.staleFor = staleFor
    }
}

extension Entry {
    fileprivate var isNothing: Bool { attributes.tags.contains(Computed.nothingTag) }

    fileprivate var valueOrNothing: Entry? { isNothing ? nil : self }
}
