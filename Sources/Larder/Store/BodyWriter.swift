import Locks
import SystemPackage

/// Writes a body of any length with bounded memory, directly to its final place.
///
/// Bytes are hashed as they arrive, those for a file while they are written. Up to the inline threshold they stay in
/// memory. Beyond it they are written to a file in the store's staging directory, which `commit()` makes the entry's
/// body without another copy; only one that is to be stored compressed is read again, whole (16 MiB at most), and
/// written to a second file. A writer that is dropped without a commit leaves nothing. Use it from one task or thread
/// at a time.
public final class BodyWriter: @unchecked Sendable {
    // SAFETY: the thread that writes or ends holds `turn`, for as long as disks take. What readers look at (`memory`,
    // `file`, `length`, `isOver`, `kept`) changes under `lock` as well, which no one holds while waiting, and is read
    // under either.
    private let store: Store
    /// Nil: the digest of what was written.
    private let key: Key?
    private var options: PutOptions
    private let declaredLength: ByteCount?
    private let declaredDigest: Digest?
    private let turn = Monitor()
    private let lock = Monitor()
    private var memory: [UInt8] = []
    private var file: StagedFile?
    private let hash = StreamDigest()
    private var length: Int64 = 0
    private var isOver = false
    private var budget: Budget
    /// What can still be read when the writer is over.
    private var kept = Kept.nothing

    private enum Kept {
        case nothing
        case memory([UInt8])
        case file(BodyFile, FilePath)
    }

    /// The longest piece that is hashed and written at a time, the one beside the other.
    private static let part = 64 << 10
    /// How much of the budget a growing file takes at a time.
    private static let step: Int64 = 4 << 20
    /// The same where the file system has little room.
    private static let smallStep: Int64 = 256 << 10

    /// - Parameter key: nil stores the body under its digest.
    init(store: Store, key: Key?, options: PutOptions, length: ByteCount?, digest: Digest?) throws {
        try options.validate(key: key ?? Self.contentKey)
        self.store = store
        self.key = key
        self.options = options
        declaredLength = length
        declaredDigest = digest
        budget = try store.engine.budget()
        if let length { try Store.checkSize(length.bytes, name, budget) }
    }

    /// The key in messages.
    private var name: Key { key ?? Self.contentKey }

    /// Stands in messages for a key that is not known yet.
    private static let contentKey: Key = "sha256:..."

    deinit { cancel() }

    /// Appends the bytes of a collection, without a copy if they are contiguous. Waits for the disk if the body is in a
    /// file, and displaces other entries if the budget is full.
    /// - Parameter bytes: the next bytes of the body; not used after the call.
    /// - Throws: `lengthMismatch` (more than declared), `tooLarge` (over the largest entry or the budget), `noSpace`,
    ///   `io`, `closed` (committed or cancelled before). After an error the writer is cancelled and leaves nothing
    ///   behind.
    public func write(_ bytes: some Collection<UInt8>) throws {
        let isDone: Void? = try bytes.withContiguousStorageIfAvailable { try write(UnsafeRawBufferPointer($0)) }
        if isDone == nil { try Array(bytes).withUnsafeBytes { try write($0) } }
    }

    /// As `write` of a collection.
    package func write(_ bytes: UnsafeRawBufferPointer) throws {
        try turn.locked { try appendOrDrop(bytes) }
    }

    /// As `write`, if the bytes stay in memory. If they belong in a file, which may make the caller wait, it does
    /// nothing and returns false: for threads that must not wait.
    package func writeInMemory(_ bytes: [UInt8]) throws -> Bool {
        try turn.locked {
            guard file == nil, staysInMemory(length + Int64(bytes.count)) else { return false }
            try bytes.withUnsafeBytes { try appendOrDrop($0) }
            return true
        }
    }

    /// Appends the bytes of a span. Meaning and errors are those of `write(_:)` for a collection.
    /// - Parameter bytes: the next bytes of the body; not used after the call.
    public func write(_ bytes: RawSpan) throws { try bytes.withUnsafeBytes { try write($0) } }

    /// Appends the bytes of a collection, on a thread that may wait for the disk. Meaning and errors are those of the
    /// synchronous form.
    /// - Parameter bytes: the next bytes of the body.
    public func write(_ bytes: some Collection<UInt8> & Sendable) async throws {
        try await IOPool.shared.run { [self] in try write(bytes) }
    }

    /// As `write` of a collection, for one after the other: one change of thread for all.
    package func write(pieces: [[UInt8]]) async throws {
        try await IOPool.shared.run { [self] in for piece in pieces { try write(piece) } }
    }

    /// Appends everything a sequence delivers; only one of its pieces is in memory at a time.
    /// - Parameter pieces: the rest of the body, or a part of it.
    /// - Throws: as `write(_:)`, and the errors of the sequence: then the writer can still be used or cancelled.
    public func write<Pieces: AsyncSequence>(contentsOf pieces: Pieces) async throws where Pieces.Element == [UInt8] {
        for try await piece in pieces { try await write(piece) }
    }

    /// Replaces the metadata, tags, lifetime, pin and durability that the writer was made with: for callers that know
    /// them only at the end of the body. The storage policy stays.
    /// - Parameter options: replaces those of `Store.writer(for:_:length:digest:)`.
    /// - Throws: `tooLarge`, `invalidArgument`; the writer can still be used after one.
    public func use(_ options: PutOptions) throws {
        try options.validate(key: name)
        turn.locked {
            let policy = self.options.storagePolicy
            self.options = options
            self.options.storagePolicy = policy
        }
    }

    /// Stores the written bytes under the writer's key. Waits for the sync of the body's file if the put is durable.
    /// - Returns: the SHA-256 of the body.
    /// - Throws: `lengthMismatch` (fewer bytes than declared), `digestMismatch`, and the errors of `Store.put`. The
    ///   writer cannot be used again in either case, and leaves nothing behind after an error.
    @discardableResult
    public func commit() throws -> Digest {
        let began = store.engine.uptime.uptime()
        return try store.complete(finish(), since: began).digest
    }

    /// Stores the written bytes under the writer's key.
    ///
    /// Result and errors are those of the synchronous form. Waiting holds no thread of the cooperative pool.
    @discardableResult
    public func commit() async throws -> Digest {
        let began = store.engine.uptime.uptime()
        // What is in memory goes to the pending batch, and nothing waits for a disk.
        let isShort = lock.locked { file == nil && !store.compresses(length, options) }
        let put = try isShort ? finish() : await IOPool.shared.run { [self] in try finish() }
        return try await store.complete(put, since: began).digest
    }

    /// Drops the written bytes. No effect after `commit()` or a first `cancel()`.
    public func cancel() {
        turn.locked { drop() }
    }

    /// As `cancel()`; a file is removed on a thread that may wait for the disk.
    package func cancelElsewhere() async {
        if lock.locked({ file == nil }) { return cancel() }
        // `cancel()` throws nothing.
        try? await IOPool.shared.run { [self] in cancel() }
    }

    /// The bytes of a range, cut to the part written so far. They stay readable after `commit()`, `cancel()` and a
    /// failed `write`, for as long as the writer is held. Safe from any thread.
    /// - Parameter range: offsets from the start of the body.
    /// - Throws: `io`.
    public func bytes(in range: Range<Int64>) throws -> [UInt8] {
        let (source, written) = lock.locked { (isOver ? kept : current, length) }
        let range = range.clamped(to: 0..<written)
        switch source {
        case .nothing: return []
        case .memory(let bytes): return Array(bytes[Int(range.lowerBound)..<Int(range.upperBound)])
        case .file(let file, let path):
            return try [UInt8](unsafeUninitializedCapacity: range.count) { buffer, count in
                count = try file.readSound(
                    into: UnsafeMutableRawBufferPointer(
                        rebasing: UnsafeMutableRawBufferPointer(buffer)[..<range.count]),
                    at: range.lowerBound, path: path)
            }
        }
    }

    /// The bytes of a range, cut to the part written so far. A file is read on a thread that may wait for the disk;
    /// otherwise as the synchronous `bytes(in:)`.
    /// - Parameter range: offsets from the start of the body.
    /// - Throws: `io`.
    public func bytes(in range: Range<Int64>) async throws -> [UInt8] {
        try Task.checkCancellation()
        let read: @Sendable () throws -> [UInt8] = { [self] in try bytes(in: range) }
        if lock.locked({ if case .file = isOver ? kept : current { false } else { true } }) { return try read() }
        return try await IOPool.shared.run(read)
    }

    // MARK: In turn

    private func appendOrDrop(_ bytes: UnsafeRawBufferPointer) throws {
        do {
            try requireOpen()
            try append(bytes)
        } catch {
            drop()
            throw error
        }
    }

    private func staysInMemory(_ total: Int64) -> Bool {
        total <= store.inlineLimit(budget) || options.storagePolicy == .memoryOnly
    }

    private var current: Kept {
        // Both, when the move from memory to the file failed.
        guard let file, memory.isEmpty else { return .memory(memory) }
        return .file(file.content, store.engine.files.path(of: file))
    }

    private func requireOpen() throws(LarderError) {
        if isOver { throw LarderError(.closed, "the writer of \(name) was committed or cancelled before", key: name) }
        try store.requireOpen()
    }

    private func append(_ bytes: UnsafeRawBufferPointer) throws {
        if bytes.isEmpty { return }
        let total = length + Int64(bytes.count)
        if let declaredLength, total > declaredLength.bytes { throw lengthMismatch(total, isMore: true) }
        try Store.checkSize(total, name, budget)
        if options.storagePolicy == .memoryOnly, total > store.configuration.memoryLimit.bytes / 2 {
            throw LarderError(
                .tooLarge,
                "the body of \(name) has \(ByteCount(total).exactly) or more, over half of the memory limit of "
                    + "\(store.configuration.memoryLimit.exactly): store it on disk",
                key: name)
        }
        if file == nil, staysInMemory(total) {
            hash.update(bytes, isBeside: false)
            lock.locked {
                memory.append(contentsOf: bytes)
                length = total
            }
        } else {
            try spill(total)
            for start in stride(from: 0, to: bytes.count, by: Self.part) {
                let part = UnsafeRawBufferPointer(rebasing: bytes[start..<min(start + Self.part, bytes.count)])
                let offset = length
                hash.update(part, isBeside: true)
                try store.writing().fullDisk.writing(Int64(part.count)) { try write(part, at: offset) }
                lock.locked { length += Int64(part.count) }
            }
        }
    }

    /// Moves from memory to a file, and keeps enough of the budget for `total` bytes.
    private func spill(_ total: Int64) throws {
        let writing = try store.writing()
        let files = store.engine.files
        let needed = StagedFile.allocation(files.fileLength(total))
        if file == nil {
            let expected = declaredLength.map { StagedFile.allocation(files.fileLength($0.bytes)) } ?? needed
            // All of a declared body at once, so that it fails early; of an open-ended one as it grows.
            let created = try writing.stager.create(reserving: max(needed, expected), for: name)
            lock.locked { file = created }
            try writing.fullDisk.writing(max(needed, expected), whole: created.descriptor) {
                if let declaredLength { try preallocate(from: 0, to: declaredLength.bytes) }
                try created.seal?.begin(created.descriptor)
                try memory.withUnsafeBytes { try write($0, at: 0) }
            }
            lock.locked { memory = [] }
        } else if let reserved = file?.reserved, needed > reserved {
            // On a full disk entries would give way for what may never come.
            let step = try writing.fullDisk.isNearlyFull() ? Self.smallStep : Self.step
            let more = max(needed - reserved, Swift.min(step, budget.usableBytes / 16))
            try writing.roomMaker.reserve(more, for: name)
            lock.locked { file?.reserved += more }
            try writing.fullDisk.writing(more) {
                try preallocate(from: length, to: min(length + more, total + Self.step))
            }
            // The largest entry may have been changed meanwhile.
            budget = try store.engine.budget()
        }
    }

    private func preallocate(from start: Int64, to end: Int64) throws {
        guard let file else { return }
        try store.writing().stager.preallocate(file, from: start, to: end)
    }

    private func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws {
        guard let file else { return }
        if offset > 0 { try store.writing().stager.requireWhole(file, to: offset) }
        try file.content.write(bytes, at: offset, path: store.engine.files.path(of: file))
    }

    /// The put of what was written; the writer is over.
    private func finish() throws -> PendingPut {
        try turn.locked {
            do {
                try requireOpen()
                let put = try seal()
                lock.locked { end() }
                return put
            } catch {
                drop()
                throw error
            }
        }
    }

    private func seal() throws -> PendingPut {
        if let declaredLength, length != declaredLength.bytes { throw lengthMismatch(length, isMore: false) }
        let digest = hash.finalize()
        if let declaredDigest, declaredDigest != digest { throw Store.mismatch(name, declaredDigest, digest) }
        let key = key ?? Key(digest)
        guard var file else { return store.makePut(key, digest, UInt64(length), .inline(memory), options) }
        file.length = length
        let writing = try store.writing()
        if let member = compressed(key, digest, writing) {
            // What reads the writer keeps the first file.
            writing.staged.discard(file)
            return store.makePut(key, digest, UInt64(length), .staged(member), options)
        }
        if file.seal != nil {
            let content = file.content
            try writing.fullDisk.writing(Int64(BodySeal.chunkLength)) { try content.finish(digest, length: length) }
        }
        try writing.stager.settle(&file, isDurable: store.isDurable(options))
        lock.locked { self.file = file }
        return store.makePut(key, digest, UInt64(length), .staged(file), options)
    }

    /// A second file with what was written, compressed, if that is asked for and there is room for both. What fails
    /// does not fail the put, which has its file.
    private func compressed(_ key: Key, _ digest: Digest, _ writing: Engine.Writing) -> StagedFile? {
        guard store.compression(options).tries(Int(clamping: length)), let body = try? bytes(in: 0..<length),
            body.count == length, let member = body.withUnsafeBytes({ GzipWriter.compressed($0) })
        else { return nil }
        let isDurable = store.isDurable(options)
        return member.withUnsafeBytes {
            let form = Stager.Form(bytes: $0, encoding: .gzip) { digest }
            return (try? writing.stager.stageIfFree(form, for: key, isDurable: isDurable)) ?? nil
        }
    }

    /// What was written stays readable. Call it under `lock`.
    private func end() {
        if !isOver { kept = current }
        isOver = true
        memory = []
        file = nil
    }

    private func drop() {
        let unneeded = file
        hash.cancel()
        lock.locked { end() }
        guard let unneeded, let writing = store.engine.writing else { return }
        writing.staged.discard(unneeded)
    }

    private func lengthMismatch(_ actual: Int64, isMore: Bool) -> LarderError {
        let declared = declaredLength?.bytes ?? 0
        return LarderError(
            .lengthMismatch,
            "the body of \(name) has \(isMore ? "at least " : "")\(actual) bytes, not \(declared) as declared: "
                + "it was cut or is another one; nothing was stored",
            key: name)
    }
}

extension Store {
    /// A writer for the body of `key`, for bodies that arrive in pieces or do not fit into memory.
    /// - Parameters:
    ///   - key: the key to store it under, 1 to 65,536 bytes.
    ///   - options: as for `put`. Default: no tags, and the store's lifetime.
    ///   - length: the length the body will have; nil (the default) if not known. Its room is reserved immediately, so
    ///     that a body that does not fit fails early.
    ///   - digest: the SHA-256 the body will have; nil (the default) if not known.
    /// - Returns: a writer without bytes.
    /// - Throws: `invalidArgument`, `tooLarge`, `closed`, `readOnly`.
    public func writer(
        for key: Key, _ options: PutOptions = PutOptions(), length: ByteCount? = nil, digest: Digest? = nil
    ) throws -> BodyWriter {
        _ = try writing()
        return try BodyWriter(store: self, key: key, options: options, length: length, digest: digest)
    }
}
