import HTTPCaching
import Larder

/// Making one body of the parts that together are the whole (RFC 9111 section 3.4).
///
/// The part in progress that has the most becomes the body of the response: what other entries have is copied into it,
/// and its entry is replaced by one under the key of the response that has the same content. So nothing is copied where
/// all ranges were written to one part. Only where there is no part in progress is all of the response copied.
extension ResponseStore {
    /// Replaces the parts of a response that is whole by one body. Does nothing if the response is not whole, or the
    /// parts are written by another process, which does this then. Loads that end at the same time may all see that the
    /// response is whole: one after another looks. When one of them fails, those who wait do not try: they would fail,
    /// too, after copying the same bytes again.
    /// - Parameter isCurrent: whether nothing was invalidated since the load that made it whole was asked for.
    func complete(
        _ key: Key, primary: String, storagePolicy: StoragePolicy, isCurrent: @escaping @Sendable () -> Bool
    ) async throws {
        guard await completions.take(key) else { return }
        do {
            try await completeInTurn(key, primary: primary, storagePolicy: storagePolicy, isCurrent: isCurrent)
        } catch {
            completions.dismiss(key)
            throw error
        }
        completions.leave(key)
    }

    private func completeInTurn(
        _ key: Key, primary: String, storagePolicy: StoragePolicy, isCurrent: @escaping @Sendable () -> Bool
    ) async throws {
        guard let found = try await store.performShort({ [self] in try findOne(key) }), !found.parts.isEmpty,
            case .complete(let total) = found.response.body
        else { return }
        var options = options(
            for: found.response, tags: found.entry.attributes.tags, storagePolicy: storagePolicy)
        // What is to stay in memory must not be copied into a part on disk.
        if storagePolicy == .memoryOnly { return try await completeInMemory(found, total, primary, options) }
        if let whole = found.parts.lazy.compactMap({ $0.digest(ofWhole: total) }).first {
            return try await store.performShort { [self, options] in
                _ = try replace(found, total, primary, whole, options)
            }
        }
        let placed = found.parts.filter(\.isInProgress)
        if placed.isEmpty { return try await completeByCopy(found, total, primary, options) }
        options.metadata = StoredPart.placedMetadata
        let content = PartWriters.Content(response: found.response, total: total, isCurrent: isCurrent)
        for candidate in placed.sorted(by: { $0.available.count > $1.available.count }) {
            let part = try await store.performShort { [self, options] in
                try writers.acquire(candidate.part.id, content, at: key, options)
            }
            guard let part else { continue }
            let result: Result<Void, any Error>
            do {
                try await complete(part, found, total, primary, options)
                result = .success(())
            } catch {
                result = .failure(error)
            }
            try await store.performShort { [self] in
                try writers.release(part, of: key) { try parts(at: key).contains { $0.id == part.id } }
            }
            return try result.get()
        }
    }

    private func complete(
        _ part: PartWriters.Part, _ found: Found, _ total: Int64, _ primary: String, _ options: PutOptions
    ) async throws {
        for gap in ByteRanges(part.writer.ranges).gaps(in: 0..<total) {
            var position = gap.lowerBound
            try await copy(found, gap) { [store] piece in
                let start = position
                try await store.performShort { try part.write(piece, at: start) }
                position += Int64(piece.count)
            }
        }
        // Some of it was displaced meanwhile.
        guard part.writer.isComplete else { return }
        let digest = try await part.writer.commit()
        part.end()
        try await store.performShort { [self] in
            let isDone = try replace(found, total, primary, digest, options)
            if !isDone, try !parts(at: found.key).contains(where: { $0.id == part.id }) {
                try store.remove(StoredPart.key(found.key, part.id))
            }
        }
    }

    /// Copies all of a response to an entry of its own, whose content the response gets then.
    private func completeByCopy(
        _ found: Found, _ total: Int64, _ primary: String, _ options: PutOptions
    ) async throws {
        let key = StoredPart(ranges: ByteRanges([0..<total])).key(found.key)
        var copyOptions = options
        copyOptions.metadata = StoredPart.packedMetadata
        let writer = try store.writer(for: key, copyOptions, length: ByteCount(total))
        let digest: Digest
        do {
            try await copy(found, 0..<total) { try await writer.write($0) }
            digest = try await writer.commit()
        } catch {
            await writer.cancelElsewhere()
            throw error
        }
        try await store.performShort { [self] in
            let result = Result { try replace(found, total, primary, digest, options) }
            try store.remove(key)
            _ = try result.get()
        }
    }

    /// As above, where no other process sees the response.
    private func completeInMemory(
        _ found: Found, _ total: Int64, _ primary: String, _ options: PutOptions
    ) async throws {
        let writer = try store.writer(for: found.key, options, length: ByteCount(total))
        do {
            try await copy(found, 0..<total) { try await writer.write($0) }
            let isDone = try await store.performShort { [self] in
                try lock(primary).locked {
                    guard let whole = try whole(found, total, options, { try store.get($0, includingExpired: true) })
                    else { return false }
                    try writer.use(whole.options)
                    try writer.commit()
                    try remove(whole.parts, of: found.key)
                    return true
                }
            }
            if !isDone { await writer.cancelElsewhere() }
        } catch {
            await writer.cancelElsewhere()
            throw error
        }
    }

    private func copy(
        _ found: Found, _ range: Range<Int64>, to write: ([UInt8]) async throws -> Void
    ) async throws {
        var iterator = ResponseBody(found.segments(range)).makeAsyncIterator()
        while let piece = try await iterator.next() {
            try await write(piece)
            copiedBytes.add(Int64(piece.count), ordering: .relaxed)
        }
    }

    /// Puts an entry with content that the store has, the whole, in the place of the parts, if those are still listed.
    /// May wait.
    /// - Parameters:
    ///   - digest: of the whole.
    ///   - options: what to store it with, save lifetime, tags and metadata.
    ///   - lookUp: looks up an entry; not given: in the store.
    /// - Returns: false if that is another response now, or the content was displaced.
    func replace(
        _ found: Found, _ total: Int64, _ primary: String, _ digest: Digest, _ options: PutOptions,
        lookUp: ((Key) throws -> Entry?)? = nil
    ) throws -> Bool {
        try lock(primary).locked {
            // Another process, and a load of a whole response, may change the entry at any time.
            for _ in 0..<8 {
                let lookUp = lookUp ?? { try self.store.get($0, includingExpired: true) }
                guard let whole = try whole(found, total, options, lookUp) else { return false }
                var batch = WriteBatch()
                batch.put(contentOf: digest, replacing: whole.entry, whole.options)
                switch try store.write(batch)[0] {
                case .failed(let error): throw error
                case .changed: continue
                case .stored:
                    // Not before that is done: it may fail, or find the content displaced.
                    try remove(whole.parts, of: found.key)
                    return true
                default: return false
                }
            }
            return false
        }
    }

    /// What the whole is stored with in the place of its parts, and what it replaces; nil if the parts are not listed
    /// any more. Under the lock of the primary key.
    private func whole(
        _ found: Found, _ total: Int64, _ options: PutOptions, _ lookUp: (Key) throws -> Entry?
    ) throws -> (options: PutOptions, entry: Entry, parts: [StoredPart])? {
        // The ids are random: a record that lists one of them is of the same representation.
        guard let entry = try lookUp(found.key), let record = StoredRecord(entry.metadata),
            record.parts.contains(where: { listed in found.parts.contains { $0.part.id == listed.id } })
        else { return nil }
        var response = record.response
        response.body = .complete(length: total)
        response.head.headerFields[.contentLength] = String(total)
        var options = options
        options.lifetime = lifetime(of: response.policy)
        options.tags = entry.attributes.tags
        options.metadata = StoredRecord(response).encoded
        return (options, entry, record.parts)
    }
}
