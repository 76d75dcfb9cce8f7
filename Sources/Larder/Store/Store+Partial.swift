/// Bodies in progress: written in ranges, in any order, seen by other processes, and resumed after an interruption.
///
/// A body in progress is an entry like others for the budget, displacement, pins, tags and removal. Lookups and
/// listings do not see it: ``get(_:includingExpired:)`` and ``contains(_:)`` are misses until it is complete. It is not
/// displaced while a writer has it.
extension Store {
    /// A writer for the body of `key` that may write its ranges in any order. It takes over the body that an earlier
    /// writer of this or another process left, or else begins a new one.
    ///
    /// The ranges stored when it returns are those of the earlier writer, and so is ``PartialWriter/metadata``, from
    /// which the caller can see if they are of the same resource: if not, cancel the writer and begin again. A body is
    /// not taken over if it was declared with another total length, has expired, or may be damaged by a power loss. A
    /// new body immediately replaces an existing entry: to keep that until the new one is complete, use
    /// ``writer(for:_:length:digest:)``.
    ///
    /// Waits for the commit that it joins.
    /// - Parameters:
    ///   - key: the key to store it under, 1 to 65,536 bytes.
    ///   - options: as for `put`, except that `memoryOnly` is refused. The metadata is that of a new body only.
    ///   - total: the length that the body will have; nil (the default) if it is not known.
    ///   - digest: the SHA-256 that the body will have; nil (the default) if it is not known.
    /// - Returns: the writer, which the caller must keep. One that is dropped leaves the body as
    ///   ``PartialWriter/suspend()`` does.
    /// - Throws: `locked` (another writer, of this process or another, is writing the body: follow it),
    ///   `invalidArgument`, `tooLarge`, `noSpace`, `closed`, `readOnly`, `io`.
    @available(*, noasync, message: "Use `perform`, which waits off the cooperative threads.")
    public func partialWriter(
        for key: Key, _ options: PutOptions = PutOptions(), total: ByteCount? = nil, digest: Digest? = nil
    ) throws -> PartialWriter {
        let bodies = try writing().partials
        try options.validate(key: key)
        if options.storagePolicy == .memoryOnly {
            throw LarderError(
                .invalidArgument, "a body in progress is on disk: \(key) cannot be `memoryOnly`", key: key)
        }
        if let total {
            try Store.checkSize(total.bytes, key, engine.budget())
        }
        let work = PartialWork(
            key: key, metadata: options.metadata, total: total?.bytes, version: version, configuration: configuration,
            bodies)
        try bodies.enter(work)
        do {
            var relaxed = options
            relaxed.durability = .relaxed
            let number = Digest.random()
            let job = try bodies.begin(work, number) { file in
                makePut(
                    key, number, UInt64(total?.bytes ?? 0), .staged(file), relaxed,
                    progress: EntryRecord.Progress(total: total?.bytes))
            }
            try engine.run(job)
            try bodies.start(work, job)
        } catch {
            work.end(.cancelled)
            throw error
        }
        return PartialWriter(store: self, work: work, options: options, digest: digest)
    }

    /// The body in progress under `key`, as far as it is stored now; nil if there is none. Counts as a use of the
    /// entry, but not as a lookup.
    /// - Parameter key: the key that its writer was made for.
    /// - Returns: a view of the bytes stored at the moment of the call. It stays readable whatever happens to the
    ///   entry.
    /// - Throws: `invalidArgument`, `tooLarge` (the key), `closed`, `io`, `readersFull`.
    @available(*, noasync, message: "Use `perform`, which waits off the cooperative threads.")
    public func partialBody(of key: Key) throws -> PartialBody? {
        try requireOpen()
        try key.validate()
        guard case .hit(let found, let file) = try engine.partials.find(key, version, mayWait: true) else { return nil }
        return PartialBody(store: self, key: key, found, file)
    }

    /// The result of ``lookUpPartial(_:)``.
    package enum PartialLookup: Sendable {
        case hit(PartialBody)
        case miss
        /// Only a lookup that may wait can tell: the file is not in its place.
        case due
    }

    /// As the synchronous `partialBody(of:)`, for threads that must not wait for a disk: an event loop, the cooperative
    /// pool.
    package func lookUpPartial(_ key: Key) throws -> PartialLookup {
        try requireOpen()
        try key.validate()
        switch try engine.partials.find(key, version, mayWait: false) {
        case .hit(let found, let file): return .hit(PartialBody(store: self, key: key, found, file))
        case .miss: return .miss
        case .due: return .due
        }
    }
}

extension Digest {
    /// A digest that no body has.
    fileprivate static func random() -> Digest {
        var generator = SystemRandomNumberGenerator()
        let words = (generator.next(), generator.next(), generator.next(), generator.next())
        return withUnsafeBytes(of: words) { Digest(copying: $0) }
    }
}
