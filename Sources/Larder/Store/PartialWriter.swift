/// Writes a body in ranges, in any order, directly to its final place. See
/// ``Store/partialWriter(for:_:total:digest:)``.
///
/// A byte is written once: if a range overlaps stored ones, only the missing part is written, and the rest stays as it
/// is. Readers in this process see a range when `write` returns; other processes, and a writer that takes over after a
/// crash, with the next commit, some 50 ms later.
///
/// Safe from any thread; calls run one at a time.
public final class PartialWriter: @unchecked Sendable {
    // SAFETY: `options` is touched only in turn (`PartialWork.inTurn`); the rest is immutable.
    private let store: Store
    private let work: PartialWork
    private var options: PutOptions
    private let declaredDigest: Digest?

    init(store: Store, work: PartialWork, options: PutOptions, digest: Digest?) {
        self.store = store
        self.work = work
        self.options = options
        self.options.metadata = work.metadata
        declaredDigest = digest
    }

    deinit { store.engine.writing?.partials.suspendLater(work) }

    // MARK: What is there

    /// The key that the body is for.
    public var key: Key { work.key }

    /// The stored ranges, in order; none of them overlap or touch.
    public var ranges: [Range<Int64>] { work.progress.ranges.list }

    /// The length that the body will have; nil if it is not known.
    public var total: ByteCount? { work.progress.total.map { ByteCount($0) } }

    /// The metadata that is stored with it. For a body that was taken over, the metadata of its earlier writer.
    public var metadata: [UInt8] { work.metadata }

    /// True if every byte is stored, as far as the length is known: `commit()` can be called.
    public var isComplete: Bool { work.progress.isComplete }

    // MARK: Writing

    /// Writes a range of the body, without a copy if the bytes are contiguous. Waits for the disk, and displaces other
    /// entries if the budget is full.
    /// - Parameters:
    ///   - bytes: the bytes of the range; not used after the call. They are not compared with bytes already stored.
    ///   - offset: the position of the first byte, 0 or more.
    /// - Throws: `lengthMismatch` (beyond the total length), `tooLarge` (over the largest entry or the budget, or more
    ///   than 1,024 separate ranges), `noSpace`, `io`, `invalidArgument`: the writer can still be used. `gone` (the
    ///   body was removed, displaced or replaced), `closed`: it cannot.
    public func write(_ bytes: some Collection<UInt8>, at offset: Int64) throws {
        try work.inTurn { try writeInTurn(bytes, at: offset) }
    }

    /// Writes a range of the body. Meaning and errors are those of `write(_:at:)` for a collection.
    public func write(_ bytes: RawSpan, at offset: Int64) throws {
        try bytes.withUnsafeBytes { bytes in try work.inTurn { try writeInTurn(bytes, at: offset) } }
    }

    /// Writes a range of the body, on a thread that may wait for the disk. Meaning and errors are those of the
    /// synchronous form. It runs to its end even if the task is cancelled.
    public func write(_ bytes: some Collection<UInt8> & Sendable, at offset: Int64) async throws {
        try await work.inTurn(on: IOPool.shared) { [self] in try writeInTurn(bytes, at: offset) }
    }

    /// Replaces the metadata, tags, lifetime, pin and durability that the writer was made with, now and for `commit()`.
    /// The storage policy stays.
    /// - Parameter options: replaces those of `Store.partialWriter(for:_:total:digest:)`.
    /// - Throws: `tooLarge`, `invalidArgument`: the writer can still be used. `gone`, `closed`: it cannot.
    public func use(_ options: PutOptions) throws {
        try store.requireOpen()
        try options.validate(key: key)
        try work.use {
            let policy = self.options.storagePolicy
            self.options = options
            self.options.storagePolicy = policy
            return self.options
        }
    }

    /// The bytes of a range, cut to the contiguous part stored from its beginning; empty if its first byte is missing.
    /// They stay readable after the writer has ended, for as long as it is held.
    /// - Parameter range: offsets from the start of the body.
    /// - Throws: `io`.
    public func bytes(in range: Range<Int64>) throws -> [UInt8] {
        guard let file = work.content else { return [] }
        return try PartialBody.bytes(in: range, of: file, work.progress.ranges, path: nil)
    }

    // MARK: Ending

    /// Leaves the body to a later writer, of this or another process, and waits until the index has all of its ranges.
    /// - Throws: `gone`, `closed`, `noSpace`, `io`. The writer has ended in either case. After `noSpace` and `io` a
    ///   later writer may find the ranges of some moments earlier.
    public func suspend() throws {
        try work.inTurn { try suspendInTurn() }
    }

    private func suspendInTurn() throws {
        let writing = try store.writing()
        try work.requireOpen()
        writing.partials.leaveOpenChunks(work)
        let job = work.job(.suspend)
        do {
            try writing.submission.run(job)
        } catch {
            work.end(.suspended)
            throw error
        }
        guard writing.partials.isDone(job) else { throw end() }
        work.end(.suspended)
    }

    /// Leaves the body to a later writer.
    ///
    /// Errors are those of the synchronous form. Waiting holds no thread of the cooperative pool. It runs to its end
    /// even if the task is cancelled.
    public func suspend() async throws {
        try await work.inTurn(on: IOPool.long) { [self] in try suspendInTurn() }
    }

    /// Stores the complete body under the writer's key: from now on it is an entry like one that was put.
    ///
    /// Bytes that arrived in order are hashed already; the others are read once. Waits for the commit, and for its sync
    /// if the put is durable. Without a total length the body ends with its last byte.
    /// - Returns: the SHA-256 of the body.
    /// - Throws: `incomplete` (bytes are missing), `noSpace`, `io`: the writer can still be used. `digestMismatch`: the
    ///   bytes do not have the declared digest, and are removed. `gone`: the body was removed, displaced or replaced by
    ///   another put, which stays. `closed`.
    @discardableResult
    public func commit() throws -> Digest {
        try work.inTurn { try commitInTurn() }
    }

    private func commitInTurn() throws -> Digest {
        let began = store.engine.uptime.uptime()
        let writing = try store.writing()
        try work.requireOpen()
        let progress = work.progress
        guard progress.isComplete else { throw incomplete(progress) }
        try Store.checkSize(progress.length, key, store.engine.budget())
        let digest = try work.digest(length: progress.length)
        if let declaredDigest, declaredDigest != digest {
            abandon(writing)
            throw Store.mismatch(key, declaredDigest, digest)
        }
        let put = try makePut(digest, progress.length)
        let job = work.job(
            .complete { reserved in
                guard case .staged(var file) = put.body else { return put }
                file.reserved = reserved
                return put.copy(body: .staged(file))
            }, isDurable: put.isDurable)
        do {
            try writing.submission.run(job)
        } catch {
            // Committed, and not sure to survive power loss.
            if job.isCommitted { work.end(.committed) }
            throw error
        }
        guard writing.partials.isDone(job) else { throw end() }
        work.end(.committed)
        store.engine.noteStored(put)
        store.engine.notePut(since: began)
        return digest
    }

    /// Stores the complete body under the writer's key.
    ///
    /// Result and errors are those of the synchronous form. Waiting holds no thread of the cooperative pool. It runs to
    /// its end even if the task is cancelled.
    @discardableResult
    public func commit() async throws -> Digest {
        try await work.inTurn(on: IOPool.long) { [self] in try commitInTurn() }
    }

    /// Removes the body. No effect if the writer has ended. Waits for the commit. If that fails, the log reports it,
    /// and the body is left as by `suspend()`.
    public func cancel() {
        guard let writing = store.engine.writing else { return }
        work.inTurn { abandon(writing) }
    }

    /// Removes the body.
    ///
    /// Meaning is that of the synchronous form. Waiting holds no thread of the cooperative pool. It runs to its end
    /// even if the task is cancelled.
    public func cancel() async {
        guard let writing = store.engine.writing else { return }
        // The step throws nothing.
        try? await work.inTurn(on: IOPool.shared) { [self] in abandon(writing) }
    }

    // MARK: In turn

    private func writeInTurn(_ bytes: some Collection<UInt8>, at offset: Int64) throws {
        let isDone: Void? = try bytes.withContiguousStorageIfAvailable {
            try writeInTurn(UnsafeRawBufferPointer($0), at: offset)
        }
        if isDone == nil { try Array(bytes).withUnsafeBytes { try writeInTurn($0, at: offset) } }
    }

    private func writeInTurn(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws {
        try store.requireOpen()
        try work.write(bytes, at: offset)
    }

    private func abandon(_ writing: Engine.Writing) {
        guard work.ending == nil else { return }
        do {
            try writing.submission.run(work.job(.abandon))
            work.end(.cancelled)
        } catch {
            work.end(.cancelled)
            work.leaveUnsettled()
            store.engine.logger(.calls).warning(
                "a body in progress is not removed", metadata: ["error": "\(error)", "key": "\(key)"])
        }
    }

    /// The index no longer has the body.
    private func end() -> LarderError {
        work.end(.gone)
        return work.gone
    }

    /// A small body goes into the index, as one that is put does.
    private func makePut(_ digest: Digest, _ length: Int64) throws -> PendingPut {
        let body: PendingPut.Body
        if length <= store.inlineLimit(try store.engine.budget()) {
            body = .inline(try bytes(in: 0..<length))
        } else if let file = try work.seal(digest, length: length, isDurable: store.isDurable(options)) {
            body = .staged(file)
        } else {
            throw work.gone
        }
        return store.makePut(key, digest, UInt64(length), body, options, completesPartial: true)
    }

    private func incomplete(_ progress: EntryRecord.Progress) -> LarderError {
        let gaps = progress.ranges.gaps(in: 0..<max(progress.length, 1))
        let first = gaps.first.map { "\($0.lowerBound)" } ?? "0"
        return LarderError(
            .incomplete, "the body of \(key) lacks bytes in \(gaps.count) places, the first at \(first)", key: key)
    }
}

extension EntryRecord.Progress {
    /// True if every byte is there, as far as the length is known.
    var isComplete: Bool { ranges.covers(length) }
}
