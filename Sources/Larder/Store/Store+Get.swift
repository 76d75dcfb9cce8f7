import LMDB

extension Store {
    /// The entry under `key`; nil if there is none, it has expired, or another application version put it.
    ///
    /// A small body is copied out of the index (about 1 us); a large one is opened, not read. Counts as an access.
    /// Waits only for page faults in the index, and once for each body that was written shortly before the machine went
    /// down: it is compared with its digest.
    /// - Complexity: O(log n) in the entries.
    /// - Parameters:
    ///   - key: the key of the entry.
    ///   - includingExpired: true returns an expired entry that is still there, for callers that can validate it.
    ///     Default: false.
    /// - Returns: a snapshot of the entry, which stays readable whatever happens to the store; nil for a miss.
    /// - Throws: `closed`, `io`, `readersFull`, `corruption` (a damaged index).
    @inline(__always)
    public func get(_ key: Key, includingExpired: Bool = false) throws -> Entry? {
        try requireOpen()
        return try engine.lookups.get(key, visibility(includingExpired))
    }

    /// The entry under `key`; nil if there is none, it has expired, or another application version put it.
    ///
    /// Parameters, result and errors are those of the synchronous form. The lookup itself runs on the thread of the
    /// caller, as it takes about a microsecond. If the configuration asks for it, a large body's bytes are checked, on
    /// a thread that may wait for the disk.
    public func get(_ key: Key, includingExpired: Bool = false) async throws -> Entry? {
        try Task.checkCancellation()
        let found = try lookUp(key, includingExpired: includingExpired)
        if case .hit(let entry) = found { return entry }
        if case .miss = found { return nil }
        let (engine, visibility) = (engine, visibility(includingExpired))
        return try await IOPool.shared.run { try engine.lookups.get(key, visibility) }
    }

    /// The entries under many keys, by one snapshot of the index: the changes of one commit are seen together, or not
    /// at all. Nil in place of each key under which `get` would find no entry. Counts as an access to each.
    ///
    /// Small bodies are copied out of the index; each large one that is kept keeps a descriptor open. Entries not yet
    /// committed are found as by `get` for one key, and so are large bodies that are displaced or replaced during the
    /// call.
    /// - Parameters:
    ///   - keys: one that is given twice is looked up twice.
    ///   - includingExpired: true returns expired entries that are still there.
    /// - Throws: `closed`, `io`, `readersFull`.
    @available(*, noasync, message: "Use `perform`, which waits off the cooperative threads.")
    public func get(_ keys: [Key], includingExpired: Bool = false) throws -> [Entry?] {
        try requireOpen()
        return try engine.lookups.get(keys, visibility(includingExpired))
    }

    /// The result of a lookup that does not wait.
    package enum Lookup {
        /// The entry.
        case hit(Entry)
        /// There is none that the caller may see.
        case miss
        /// Only a lookup that may wait can tell: a body has to be compared with its digest, or its file is not in its
        /// place.
        case due
    }

    /// As the synchronous `get`, for threads that must not wait for a disk: an event loop, the cooperative pool.
    /// - Parameter decodesLater: true leaves a body that is compressed, or encrypted in a file, as it is stored, for
    ///   callers that may not need all of it, or send its `compressedForm`. Its damage is an error when it is read
    ///   then, not a miss.
    package func lookUp(
        _ key: Key, includingExpired: Bool = false, decodesLater: Bool = false
    ) throws -> Lookup {
        try requireOpen()
        var visibility = visibility(includingExpired)
        visibility.decodesLater = decodesLater
        return try engine.lookups.lookup(key, visibility, mayWait: false)
    }

    /// As the asynchronous `get`, expired or not, of a body that may be decoded later: see `lookUp`.
    package func getToSend(_ key: Key) async throws -> Entry? {
        switch try lookUp(key, includingExpired: true, decodesLater: true) {
        case .hit(let entry): entry
        case .miss: nil
        case .due: try await get(key, includingExpired: true)
        }
    }

    /// As `peek`, for threads that must not wait.
    package func peekAtOnce(_ key: Key) throws -> Lookup {
        try requireOpen()
        return try engine.lookups.lookup(key, inspection, mayWait: false)
    }

    /// Runs `body` on the bytes of the entry under `key`, without a copy if they are in the index. Counts as an access.
    ///
    /// The span points into the index's mapping: it must not leave `body`, which should be short, as it keeps pages of
    /// the index from being reused.
    /// - Parameters:
    ///   - key: the key of the entry.
    ///   - body: gets all bytes.
    /// - Returns: the result of `body`; nil if there is no fresh entry.
    /// - Throws: `closed`, `io`, `readersFull`, `corruption`, and the errors of `body`.
    @inlinable  // The caller's module knows the type of the result: generic code would look it up on each call.
    public func withBody<R>(of key: Key, _ body: (RawSpan) throws -> R) throws -> R? {
        var result: R?
        try visitBody(of: key) { result = try body($0) }
        return result
    }

    @usableFromInline
    func visitBody(of key: Key, _ body: (RawSpan) throws -> Void) throws {
        try requireOpen()
        try engine.lookups.visitBody(of: key, visibility(false), body)
    }

    /// Copies the bytes of the entry under `key` into memory of the caller: from the index, or by pread(2) from the
    /// file of a large body, in one step and without an allocation. Counts as an access.
    /// - Parameters:
    ///   - key: the key of the entry.
    ///   - buffer: gets the bytes from the start; those that do not fit are left out.
    /// - Returns: the length of the body, which is greater than the buffer's if not all of it is there; nil if there is
    ///   no fresh entry.
    /// - Throws: `closed`, `io`, `readersFull`, `corruption`.
    public func read(_ key: Key, into buffer: UnsafeMutableRawBufferPointer) throws -> Int? {
        try requireOpen()
        return try engine.lookups.read(key, visibility(false), into: buffer)
    }

    /// True if `get` would find an entry. Reads only the index, not the body, and does not count as an access.
    /// - Complexity: O(log n) in the entries.
    /// - Parameter key: the key of the entry.
    /// - Throws: `closed`, `io`, `readersFull`, `corruption`.
    public func contains(_ key: Key) throws -> Bool {
        try requireOpen()
        return try engine.lookups.contains(key, visibility(false))
    }

    /// The attributes of the entry under `key`, expired or not; nil if there is none. Does not count as an access.
    ///
    /// Waits for the commit of the pending changes of this process, so that the figures are exact.
    /// - Complexity: O(log n) in the entries, and O(k) in the leases on the entry, its tags and its content.
    /// - Parameter key: the key of the entry.
    /// - Throws: `closed`, `io`, `readersFull`, `corruption`.
    @available(*, noasync, message: "Use `perform`, which waits off the cooperative threads.")
    public func attributes(of key: Key) throws -> Attributes? {
        try requireOpen()
        engine.commitPending()
        return try engine.lookups.attributes(of: key, visibility(true))
    }

    /// True until the entry's lifetime is over, by the store's clock: as long as `get` without `includingExpired` would
    /// return the entry. False from then on, permanently, as the clock of a store never goes backwards.
    /// - Parameter entry: the result of `get`. A new lifetime that the entry was given since does not count.
    public func isFresh(_ entry: Entry) -> Bool {
        if entry.expires > engine.clock.now() { return true }
        engine.clock.noteExpiry()
        return false
    }

    /// The bytes under `key`: reading gives nil for a miss and for any failure; setting stores with default options, or
    /// removes when nil, and reports a failure to the configuration's logger only. If failures matter, use `get`, `put`
    /// and `remove`.
    /// - Parameter key: the key of the entry.
    public subscript(key: Key) -> [UInt8]? {
        get { (try? get(key))?.flatMap { try? $0.body.bytes() } }
        set {
            do {
                if let newValue { try put(newValue, for: key) } else { _ = try remove(key) }
            } catch {
                logger(.calls).error("subscript write failed", metadata: ["key": "\(key)", "error": "\(error)"])
            }
        }
    }

    @inline(__always)
    func visibility(_ includingExpired: Bool) -> Lookups.Visibility {
        Lookups.Visibility(version: version, includesExpired: includingExpired)
    }
}

extension Store {
    /// As the synchronous `get`, expired or not, but does not count as an access: for callers that inspect the store.
    package func peek(_ key: Key) throws -> Entry? {
        try requireOpen()
        return try engine.lookups.get(key, inspection)
    }

    private var inspection: Lookups.Visibility {
        var visibility = visibility(true)
        (visibility.isCounted, visibility.isAccess) = (false, false)
        return visibility
    }

    /// As the asynchronous `get`, as a step of another lookup, which is the one that counts.
    func quietGet(_ key: Key) async throws -> Entry? {
        try Task.checkCancellation()
        try requireOpen()
        var visibility = visibility(false)
        visibility.isCounted = false
        switch try engine.lookups.lookup(key, visibility, mayWait: false) {
        case .hit(let entry): return entry
        case .miss: return nil
        case .due:
            let (engine, quiet) = (engine, visibility)
            return try await IOPool.shared.run { try engine.lookups.get(key, quiet) }
        }
    }
}
