/// Looking up by content: the SHA-256 of a body.
///
/// A digest leads to bytes, not to an entry: several entries may share them, each with its own metadata and lifetime.
/// Content is found for as long as an entry of any application version refers to it, expired or not. What was put
/// with ``StoragePolicy/memoryOnly`` is not.
///
/// A body of up to ``Configuration/embeddingThreshold`` is part of its entry's record, and nothing leads from a digest
/// to it but the key that `putByContent(_:_:)` gives it. Where small bodies were put under other keys, a lookup of
/// content that is found nowhere else walks over all entries: about 50 ms for a million. Put them by content, or set
/// the threshold to 0, where that matters. None of these calls is an access, so none keeps an entry from displacement:
/// where that matters, look up the entry, or hold a ``Lease``. Safe from any thread.
extension Store {
    /// True if there is content with a digest. Reads the index and the length of a file, not its bytes.
    ///
    /// Waits for puts that are under way in this process.
    /// - Complexity: O(log n) in the bodies; see above for small ones.
    /// - Parameter digest: SHA-256 of the body.
    /// - Throws: `closed`, `io`, `readersFull`.
    @available(*, noasync, message: "Use `perform`, which waits off the cooperative threads.")
    public func contains(digest: Digest) throws -> Bool { try missing(of: [digest]).isEmpty }

    /// The digests without content, in the order given, by one snapshot of the index.
    ///
    /// Waits for puts that are under way in this process.
    /// - Complexity: O(k log n) for k digests; see above for small bodies.
    /// - Parameter digests: SHA-256 of bodies; one that is given twice is looked up twice.
    /// - Throws: `closed`, `io`, `readersFull`.
    @available(*, noasync, message: "Use `perform`, which waits off the cooperative threads.")
    public func missing(of digests: some Sequence<Digest>) throws -> [Digest] {
        try requireOpen()
        engine.commitPending(touches: false)
        return try engine.bodies.missing(Array(digests))
    }

    /// As above; content whose length differs from that in `lengths` is also missing, and so is a small body that was
    /// not put by content.
    package func missing(
        of digests: some Sequence<Digest>, lengths: [Digest: Int64]
    ) async throws -> [Digest] {
        try Task.checkCancellation()
        try requireOpen()
        await engine.commitPending(touches: false)
        let (engine, digests) = (engine, Array(digests))
        return try await IOPool.shared.run { try engine.bodies.missing(digests, lengths: lengths, walks: false) }
    }

    /// The content with a digest; nil if there is none, or if it turns out to be damaged.
    ///
    /// A small body is copied out of the index; a large one is opened, not read. Waits for puts that are under way in
    /// this process.
    /// - Parameter digest: SHA-256 of the body.
    /// - Throws: `closed`, `io`, `readersFull`.
    @available(*, noasync, message: "Use `perform`, which waits off the cooperative threads.")
    public func body(digest: Digest) throws -> Body? {
        try requireOpen()
        engine.commitPending(touches: false)
        return try engine.bodies.body(digest)
    }

    /// The content with a digest; nil if there is none, if it turns out to be damaged, or for a small body that was not
    /// put by content.
    ///
    /// Parameters, result and errors are those of the synchronous form. Waiting holds no thread of the cooperative
    /// pool.
    package func body(digest: Digest) async throws -> Body? {
        try Task.checkCancellation()
        try requireOpen()
        await engine.commitPending(touches: false)
        let engine = engine
        return try await IOPool.shared.run { try engine.bodies.body(digest, walks: false) }
    }

    /// The contents with many digests, by one snapshot of the index; nil in place of each that is missing.
    ///
    /// Each large body that is kept keeps a descriptor open. Waits for puts that are under way in this process.
    /// - Parameter digests: SHA-256 of bodies.
    /// - Throws: `closed`, `io`, `readersFull`.
    @available(*, noasync, message: "Use `perform`, which waits off the cooperative threads.")
    public func bodies(digests: [Digest]) throws -> [Body?] {
        try requireOpen()
        engine.commitPending(touches: false)
        return try engine.bodies.bodies(digests)
    }
}
