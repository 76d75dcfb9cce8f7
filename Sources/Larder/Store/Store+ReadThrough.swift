extension Store {
    /// The entry under `key`; computed and stored first if there is no fresh one.
    ///
    ///     let answer = try await store.value(for: key) { key in
    ///         Computed(try await model.answer(key.text).utf8, PutOptions(lifetime: .duration(.seconds(3600))))
    ///     }
    ///
    /// However many callers of this process ask, the value is computed once. All of them get it, or the error of the
    /// computation, which is not stored. Between processes, the one that computes holds a claim on the key, and the
    /// others act according to `ReadThroughOptions.others`. The claim of a process that died has no effect.
    ///
    /// A cancelled caller gets `CancellationError`; the others are not affected. When the last caller has left, the
    /// computation is cancelled. A value that it returns anyway is not stored.
    ///
    /// A value that cannot be stored, because it is too large, the disk is full or the store is damaged, is returned
    /// anyway, and the log gives the reason.
    ///
    /// With `ReadThroughOptions.staleFor` a value may be refreshed in the background. The log reports a failed refresh,
    /// and the key is not refreshed again for five seconds. A refresh that takes long is not cancelled unless callers
    /// have waited for it and the last one has left.
    /// - Parameters:
    ///   - key: the key to look up.
    ///   - options: for other processes that need the value at the same time, and for the use of a stale value.
    ///   - compute: makes the value; called at most once at a time for a key. It may ask for other keys, except those
    ///     whose computation waits for this one: then it gets `invalidArgument`. This is detected in the task that runs
    ///     it, in children of that task and in tasks they make, but not in detached ones.
    /// - Returns: the entry; nil if the computation returned `Computed.nothing(for:)`, now or within the duration it
    ///   gave.
    /// - Throws: `invalidArgument`, `tooLarge` (the key), `closed`, `readOnly` (a miss in a read-only store), `io`,
    ///   `corruption`, `CancellationError`, and the errors of `compute`.
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

/// The result of a computation of `Store.value(for:_:orStore:)`.
public struct Computed: Sendable {
    /// The value.
    public var body: [UInt8]
    /// The options to store it with: lifetime, tags, metadata, policy.
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
    /// This is stored as an entry without bytes that has the tag `Computed.nothingTag`, and that `Store.get` finds like
    /// any other.
    /// - Parameter duration: how long the store remembers this.
    public static func nothing(for duration: Duration) -> Computed {
        Computed([], PutOptions(lifetime: .duration(duration), tags: [nothingTag]).withReservedNames)
    }

    /// The tag of entries that stand for a missing value.
    public static let nothingTag = "larder:nothing"

    var isNothing: Bool { options.tags.contains(Self.nothingTag) }
}

/// The options of `Store.value(for:_:orStore:)`.
public struct ReadThroughOptions: Sendable, Hashable {
    /// The behaviour of a process while another one computes the value.
    public enum Others: Sendable, Hashable {
        /// Waits for the value, up to this duration; then computes it itself.
        case wait(Duration)
        /// Computes the value itself immediately.
        case compute
    }

    /// The behaviour while another process computes the value. Default: wait for 30 seconds.
    public var others: Others
    /// The time after its expiry for which a value is returned immediately, while it is computed again in the
    /// background. Nil (the default): none. A store keeps expired entries for `Configuration.expiredRetention`. One
    /// process at a time computes the value; processes that wait for it take the result, as for a miss.
    public var staleFor: Duration?

    /// Options; every one has a default.
    /// - Parameters:
    ///   - others: the behaviour while another process computes the value. Default: wait for 30 seconds.
    ///   - staleFor: the time after its expiry for which a value is returned immediately, while it is computed again.
    ///     Nil (the default): none.
    public init(others: Others = .wait(.seconds(30)), staleFor: Duration? = nil) {
        self.others = others
        self.staleFor = staleFor
    }
}

extension Entry {
    fileprivate var isNothing: Bool { attributes.tags.contains(Computed.nothingTag) }

    fileprivate var valueOrNothing: Entry? { isNothing ? nil : self }
}
