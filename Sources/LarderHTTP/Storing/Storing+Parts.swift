import HTTPCaching
import Larder

/// Storing the bytes of a range.
extension Storing {
    /// Stores a part that was written to an entry of its own.
    func finish(
        _ part: StoredPart, of response: StoredResponse, _ writer: BodyWriter
    ) async throws -> (isStored: Bool, isWhole: Bool) {
        let responses = changes.responses
        try writer.use(
            PutOptions(
                lifetime: responses.lifetime(of: response.policy), storagePolicy: storagePolicy, tags: tags,
                metadata: StoredPart.packedMetadata
            ).withSharedBody)
        try await writer.commit()
        let added = try await add(part, of: response)
        if !added.isStored { try await changes.store.performShort { try responses.remove([part], of: key) } }
        return added
    }

    /// Lists a range that was written to a part in progress.
    func finish(
        _ range: Range<Int64>, of response: StoredResponse, _ sink: PartSink
    ) async throws -> (isStored: Bool, isWhole: Bool) {
        guard let part = sink.part else { return (false, false) }
        return try await add(StoredPart(id: part.id, ranges: ByteRanges([range])), of: response)
    }

    /// Moves a range from an entry of its own to a part in progress: the message did not say its length, and its end
    /// has shown that it agrees with `Content-Range`.
    func finish(
        _ range: Range<Int64>, of response: StoredResponse, _ placed: PlacedPart, _ writer: BodyWriter
    ) async throws -> (isStored: Bool, isWhole: Bool) {
        let sink = placed.sink(changes, tags: tags) { isCurrent }
        let result: Result<(isStored: Bool, isWhole: Bool), any Error>
        do {
            try await sink.copy(Int64(range.count), from: writer)
            result = .success(try await finish(range, of: response, sink))
        } catch {
            result = .failure(error)
        }
        try await release(sink)
        let added = try result.get()
        await writer.cancelElsewhere()
        return added
    }

    /// Leaves a part in progress to later loads.
    func release(_ sink: PartSink) async throws {
        guard let part = sink.partToRelease() else { return }
        try await changes.store.performShort {
            try changes.responses.writers.release(part, of: key) {
                try changes.responses.parts(at: key).contains { $0.id == part.id }
            }
        }
    }

    private func add(
        _ part: StoredPart, of response: StoredResponse
    ) async throws -> (isStored: Bool, isWhole: Bool) {
        let responses = changes.responses
        return try await changes.store.performShort {
            try responses.add(
                part, of: response, isUpdate: new.combines != nil, at: key, primary: primary, tags: tags,
                now: changes.context.now
            ) { response, parts in
                var options = responses.options(for: response, tags: tags, storagePolicy: storagePolicy)
                options.metadata = StoredRecord(response, parts: parts).encoded
                return options
            }
        }
    }
}

/// A range that can be written at its position in a part in progress.
///
/// Bytes that are there are never written again, so none may be wrong: where the message does not say its length, or
/// that does not agree with `Content-Range`, its positions cannot be relied on before its end, and it gets an entry of
/// its own. If its end shows that the length agrees, it is moved to a part in progress then. What belongs to a
/// representation that has no place in the store, or of unknown length, stays where it is.
struct PlacedPart: Sendable {
    private let range: Range<Int64>
    /// The length of the representation; nil if it is not known.
    private let total: Int64?
    /// The response as it would be stored.
    private let response: StoredResponse
    private let key: Key
    private let storagePolicy: StoragePolicy
    /// Whether other processes can see what arrives.
    private let isShown: Bool

    /// A whole response that other processes follow while it arrives; nil if it has no place.
    init?(
        whole new: NewResponse, length: Int64?, at key: Key, _ storagePolicy: StoragePolicy, _ changes: StoreChanges
    ) throws {
        guard var response = new.finished(receivedBytes: length ?? 0, isComplete: true),
            try length.map({ try changes.hasRoom($0, key) }) ?? true
        else { return nil }
        if length == nil { response.body = .partial(ByteRanges(), total: nil) }
        range = 0..<(length ?? .max)
        total = length
        self.response = response
        self.key = key
        self.storagePolicy = storagePolicy
        isShown = true
    }

    /// Nil if it cannot.
    init?(
        _ new: NewResponse, length: Int64?, at key: Key, _ storagePolicy: StoragePolicy, _ changes: StoreChanges
    ) throws {
        // A body in progress is always on disk.
        guard storagePolicy != .memoryOnly, let range = new.announcedRange, length == Int64(range.count),
            let response = new.finished(receivedBytes: Int64(range.count), isComplete: true),
            let total = response.body.total, try changes.hasRoom(total, key)
        else { return nil }
        self.range = range
        self.total = total
        self.response = response
        self.key = key
        self.storagePolicy = storagePolicy
        isShown = false
    }

    /// Where its bytes go.
    /// - Parameter isCurrent: whether nothing was invalidated since the response was asked for.
    func sink(
        _ changes: StoreChanges, tags: [String], isCurrent: @escaping @Sendable () -> Bool
    ) -> PartSink {
        let (responses, part) = (changes.responses, self)
        let options = PutOptions(
            lifetime: responses.lifetime(of: response.policy), storagePolicy: storagePolicy, tags: tags,
            metadata: StoredPart.placedMetadata + (isShown ? StoredRecord(response).encoded : [])
        ).withSharedBody
        return PartSink(changes.store, range) {
            try responses.writers.acquire(
                for: part.range, PartWriters.Content(response: part.response, total: part.total, isCurrent: isCurrent),
                at: part.key,
                responses.rules, listed: { try responses.parts(of: part.response, at: part.key) }, options)
        }
    }
}
