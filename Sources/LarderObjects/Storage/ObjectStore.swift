import Larder
import LarderHTTP
import LarderServer
import Logging

/// The objects of a server in its store.
package struct ObjectStore: Sendable {
    /// What a lookup came to that does not wait for the disk.
    enum Found {
        case object(StoredObject)
        case none
        /// Only a lookup that may wait can tell.
        case due
    }

    package let store: Store
    package let promises: Promises
    /// Whether a later result of an action takes the place of the first.
    let replacesResults: Bool
    package let counters: ObjectCounters
    private let logger: Logger
    /// Of those who decode trees: what a tree names takes many times its length.
    private let turns = Turns()

    init(
        _ store: Store, promiseTime: Duration, replacesResults: Bool, _ logger: Logger,
        counters: ObjectCounters = ObjectCounters()
    ) {
        self.store = store
        self.logger = logger
        promises = Promises(store, time: promiseTime)
        self.replacesResults = replacesResults
        self.counters = counters
    }

    /// The same over another store.
    func over(_ other: Store) -> ObjectStore {
        ObjectStore(other, promiseTime: promises.time, replacesResults: replacesResults, logger, counters: counters)
    }

    /// SHA-256 of no bytes, which is always there: clients do not upload it.
    package static let empty = Digest.of([UInt8]())

    /// Runs `body`, which decodes a message of `length` bytes; large ones one at a time.
    func decoding<R>(_ length: Int64, _ body: () async throws -> R) async throws -> R {
        guard length > 64 << 10 else { return try await body() }
        let key = Key("tree")
        _ = await turns.take(key)
        defer { turns.leave(key) }
        try Task.checkCancellation()
        return try await body()
    }

    /// Says why what is stored cannot be used: to a client it is a miss as any other.
    func noteUnusable(_ digest: Digest, _ reason: String) {
        logger.notice(
            "a stored tree or directory cannot be read: results that name it are misses",
            metadata: ["category": "results", "digest": "\(digest)", "reason": "\(reason)"])
    }

    // MARK: Looking up

    func lookUp(_ key: Key) throws -> Found {
        switch try store.lookUp(key) {
        case .hit(let entry): .object(StoredObject(entry))
        case .miss: .none
        case .due: .due
        }
    }

    func object(_ key: Key) async throws -> StoredObject? { try await store.get(key).map { StoredObject($0) } }

    /// Content that may have another name only.
    package func blob(_ digest: Digest) async throws -> StoredObject? {
        if let object = try await object(Key(digest)) { return object }
        return try await store.body(digest: digest).map { StoredObject(body: $0, digest: digest) }
    }

    /// Which of these blobs are not there. The others are promised to stay.
    /// - Parameter lengths: a blob with another length than one of these is not there.
    package func missing(of digests: [Digest], lengths: [Digest: Int64] = [:]) async throws -> [Digest] {
        let asked = digests.filter { $0 != Self.empty }
        let missing = try await store.missing(of: asked, lengths: lengths)
        let gone = Set(missing)
        let found = gone.isEmpty ? asked : asked.filter { !gone.contains($0) }
        // One may have gone before its lease was written.
        return try await promises.promise(found) ? try await store.missing(of: asked, lengths: lengths) : missing
    }

    /// Runs `body` on the answer with a blob, if it is at hand and nothing else is kept with it.
    /// - Parameter name: its digest in hexadecimal.
    func withPlainBlob(_ name: UnsafeRawBufferPointer, _ body: (ServiceHit) -> Void) throws -> Bool {
        func hit(_ content: PlainHit.Content, _ length: Int64) {
            var fields: [UInt8] = []
            fields.reserveCapacity(Self.plainFields.count + name.count + 3)
            fields += Self.plainFields
            fields.append(contentsOf: name)
            fields += [UInt8(ascii: "\""), 13, 10]
            fields.withUnsafeBytes { body(ServiceHit(fields: $0, content: content, length: length)) }
        }
        var isPlain = false
        // As `Key(Digest)` makes it.
        let key = Key(bytes: Self.keyPrefix + name)
        let found = try store.visitAtHand(key, includingExpired: false, SharedBody.kind) { metadata, found, length in
            guard metadata.isEmpty, case .bytes(let bytes) = found else { return }
            isPlain = true
            hit(.bytes(bytes), length)
        } held: { metadata, content in
            guard metadata.isEmpty else { return }
            isPlain = true
            hit(.held(content.value, content.digest), content.length)
        }
        if found != .elsewhere { return isPlain }
        guard case .hit(let entry) = try store.lookUp(key, decodesLater: true), entry.metadata.isEmpty,
            entry.body.compressedForm == nil
        else { return false }
        hit(.stored(entry.body, entry.digest), entry.body.length.bytes)
        return true
    }

    private static let keyPrefix = Array("sha256:".utf8)
    /// Of an answer, as far as they are the same for all blobs.
    private static let plainFields = Array(
        "Content-Type: application/octet-stream\r\nAccept-Ranges: bytes\r\nETag: \"".utf8)

    // MARK: Storing

    /// Blobs up to this length are held in memory.
    private static let gatheredLength: Int64 = 256 << 10

    /// Stores a file as it comes.
    func put(_ content: RequestBody?, for key: Key, _ options: PutOptions) async throws {
        if let length = Self.length(content)?.bytes, length <= Self.gatheredLength {
            let bytes = try await Self.gathered(content, limit: Int(length))
            // A put that does not wait may still find no room.
            guard await promises.isShortOfRoom() else {
                _ = try await store.put(bytes, for: key, options)
                return
            }
            var batch = WriteBatch()
            batch.put(bytes, for: key, options)
            return try await store.write(batch).throwIfFailed()
        }
        let options = await waiting(options)
        _ = try await write(content, store.writer(for: key, options, length: Self.length(content)))
    }

    /// Stores a file as it comes, if nothing else was stored under its name until it is complete.
    /// - Parameter entry: what was there before; nil for nothing.
    /// - Returns: whether it is stored.
    func put(
        _ content: RequestBody?, for key: Key, inPlaceOf entry: Entry?, _ options: PutOptions
    ) async throws -> Bool {
        let once = await waiting(PutOptions())
        let digest = try await write(content, store.writerByContent(once, length: Self.length(content)))
        var batch = WriteBatch()
        if let entry {
            batch.put(contentOf: digest, replacing: entry, options)
        } else {
            batch.put(contentOf: digest, for: key, options, unlessPresent: true)
        }
        let results = try await store.write(batch)
        try results.throwIfFailed()
        switch results.first {
        case .present, .changed: return false
        case .absent where entry != nil: return false
        case .stored: return true
        default: throw LarderError(.noSpace, "\(key) was displaced immediately: there is no room", key: key)
        }
    }

    /// Stores a blob as it comes, and promises that it stays.
    ///
    /// - Throws: `LarderError`: `digestMismatch`, `lengthMismatch`, `tooLarge`, `noSpace`, `io`.
    func put(_ content: RequestBody?, blob digest: Digest, _ options: PutOptions) async throws {
        if let length = Self.length(content)?.bytes, length <= Self.gatheredLength {
            let bytes = try await Self.gathered(content, limit: Int(length))
            if await promises.isShortOfRoom() { return try await put([(digest, bytes)], options).throwIfFailed() }
            _ = try await store.put(bytes, for: Key(digest), options, digest: digest)
        } else {
            let options = await waiting(options)
            _ = try await write(
                content, store.writerByContent(options, length: Self.length(content), digest: digest))
        }
        try await keep(digest)
    }

    /// What waits until it is committed, where room is short: what does not may find no room after it was answered.
    package func waiting(_ options: PutOptions) async -> PutOptions {
        guard await promises.isShortOfRoom() else { return options }
        var options = options
        options.durability = .durable
        return options
    }

    /// Promises that a blob that was just stored stays: immediately if room is short, and soon otherwise. Until then
    /// the blob is the most recently used one, which is displaced last.
    /// - Throws: `LarderError`: `noSpace` if it was displaced nevertheless.
    package func keep(_ digest: Digest) async throws {
        guard await promises.isShortOfRoom() else { return promises.promiseSoon(digest) }
        try await promises.write([digest])
        guard try await !store.missing(of: [digest], lengths: [:]).isEmpty else { return }
        throw LarderError(
            .noSpace, "\(Key(digest)) was displaced immediately: running builds need the whole budget",
            key: Key(digest))
    }

    /// Stores blobs, and promises that they stay, in one commit for some thousands.
    /// - Returns: the result of each.
    package func put(_ blobs: [(digest: Digest, bytes: [UInt8])], _ options: PutOptions) async throws -> [WriteResult] {
        var results: [WriteResult] = []
        for start in stride(from: 0, to: blobs.count, by: Self.blobsInCommit) {
            results += try await commit(blobs[start..<min(blobs.count, start + Self.blobsInCommit)], options)
        }
        return results
    }

    /// Each takes two operations of a batch.
    private static let blobsInCommit = 4_096

    private func commit(
        _ blobs: ArraySlice<(digest: Digest, bytes: [UInt8])>, _ options: PutOptions
    ) async throws -> [WriteResult] {
        var batch = WriteBatch()
        for blob in blobs { batch.put(blob.bytes, for: Key(blob.digest), options, digest: blob.digest) }
        // Written again even where one was promised: a store that was cleared meanwhile has no leases.
        promises.lease(blobs.map(\.digest), &batch)
        let results: [WriteResult]
        do {
            results = try await store.write(batch)
        } catch let error as LarderError {
            // There is no room for the batch as a whole.
            return blobs.map { _ in .failed(error) }
        }
        let stored = Array(results.prefix(blobs.count))
        let leased = results.suffix(blobs.count)
        promises.note(
            zip(blobs, zip(stored, leased)).compactMap { $1.0.isSuccess && $1.1.isSuccess ? $0.digest : nil })
        return stored
    }

    private static func length(_ content: RequestBody?) -> ByteCount? {
        (content == nil ? 0 : content?.length).map { ByteCount($0) }
    }

    private func write(_ content: RequestBody?, _ writer: BodyWriter) async throws -> Digest {
        do {
            if let pull = content?.makePull() { while let piece = try await pull() { try await writer.write(piece) } }
            return try await writer.commit()
        } catch {
            writer.cancel()
            throw error
        }
    }

    /// All of a content, if it is not too long.
    ///
    /// - Throws: `LarderError.Code.tooLarge`.
    static func gathered(_ content: RequestBody?, limit: Int) async throws -> [UInt8] {
        var bytes: [UInt8] = []
        guard let pull = content?.makePull() else { return bytes }
        while let piece = try await pull() {
            guard bytes.count + piece.count <= limit else { throw ContentTooLong(limit: limit) }
            bytes += piece
        }
        return bytes
    }

    /// More content than a call takes.
    struct ContentTooLong: Error {
        let limit: Int
    }
}

/// An object and what is kept with it.
package struct StoredObject: Sendable {
    package let body: Body
    package let digest: Digest
    let metadata: [UInt8]
    /// Nil for content without an entry of its own.
    let entry: Entry?

    init(_ entry: Entry) {
        body = entry.body
        digest = entry.digest
        metadata = entry.metadata
        self.entry = entry
    }

    init(body: Body, digest: Digest) {
        self.body = body
        self.digest = digest
        metadata = []
        entry = nil
    }
}
