import HTTPCaching
import Larder

/// Making one body of the parts that together are the whole (RFC 9111 section 3.4).
///
/// The part in progress that has the most becomes the body of the response: what other entries have is copied into it,
/// and its entry is replaced by one under the key of the response that has the same content. So nothing is copied where
/// all ranges were written to one part. Only where there is no part in progress is all of the response copied.
extension ResponseStore {
    /// Replaces the parts of a response that is whole by one body. Does nothing if the response is not whole, or the
    /// parts are written by another process, which does this then.
    /// - Parameter isCurrent: whether nothing was invalidated since the load that made it whole was asked for.
    func complete(
        _ key: Key, primary: String, tags: [String], storagePolicy: StoragePolicy,
        isCurrent: @escaping @Sendable () -> Bool
    ) async throws {
        guard let found = try await store.perform({ [self] in try findOne(key) }), !found.parts.isEmpty,
            case .complete(let total) = found.response.body
        else { return }
        var options = options(for: found.response, tags: tags, storagePolicy: storagePolicy)
        let placed = found.parts.filter(\.isInProgress)
        // What is to stay in memory must not be copied into a part on disk.
        if placed.isEmpty || storagePolicy == .memoryOnly {
            return try await completeByCopy(found, total, primary, options)
        }
        options.metadata = StoredPart.placedMetadata
        let content = PartWriters.Content(response: found.response, total: total, isCurrent: isCurrent)
        for candidate in placed.sorted(by: { $0.available.count > $1.available.count }) {
            let part = try await store.perform { [self, options] in
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
            try await store.perform { [self] in
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
            var iterator = ResponseBody(found.segments(gap)).makeAsyncIterator()
            while let piece = try await iterator.next() {
                let start = position
                try await store.perform { try part.write(piece, at: start) }
                copiedBytes.add(Int64(piece.count), ordering: .relaxed)
                position += Int64(piece.count)
            }
        }
        // Some of it was displaced meanwhile.
        guard part.writer.isComplete else { return }
        let digest = try await part.writer.commit()
        part.end()
        try await store.perform { [self] in
            let key = found.key
            let isDone = try replace(found, total, primary) { response, parts in
                var options = options
                options.lifetime = lifetime(of: response.policy)
                options.metadata = StoredRecord(response).encoded
                var batch = WriteBatch()
                batch.put(contentOf: digest, for: key, options)
                // The parts go when that is done, and not before: it may fail, or find the content displaced.
                let result = try store.write(batch)[0]
                if case .failed(let error) = result { throw error }
                if result.isSuccess { try remove(parts, of: key) }
                return result.isSuccess
            }
            if !isDone, try !parts(at: key).contains(where: { $0.id == part.id }) {
                try store.remove(StoredPart.key(key, part.id))
            }
        }
    }

    private func completeByCopy(
        _ found: Found, _ total: Int64, _ primary: String, _ options: PutOptions
    ) async throws {
        let writer = try store.writer(for: found.key, options, length: ByteCount(total))
        do {
            var iterator = ResponseBody(found.segments(0..<total)).makeAsyncIterator()
            while let piece = try await iterator.next() {
                try await writer.write(piece)
                copiedBytes.add(Int64(piece.count), ordering: .relaxed)
            }
            let isDone = try await store.perform { [self] in
                try replace(found, total, primary) { response, parts in
                    var options = options
                    options.lifetime = lifetime(of: response.policy)
                    options.metadata = StoredRecord(response).encoded
                    try writer.use(options)
                    try writer.commit()
                    try remove(parts, of: found.key)
                    return true
                }
            }
            if !isDone { await writer.cancelElsewhere() }
        } catch {
            await writer.cancelElsewhere()
            throw error
        }
    }

    /// Puts the whole in the place of the parts, if those are still listed. May wait.
    /// - Parameter put: stores the response without its parts; returns whether it did.
    /// - Returns: false if that is another response now.
    private func replace(
        _ found: Found, _ total: Int64, _ primary: String, _ put: (StoredResponse, [StoredPart]) throws -> Bool
    ) throws -> Bool {
        try lock(primary).locked {
            // The ids are random: a record that lists one of them is of the same representation.
            guard let record = try store.get(found.key, includingExpired: true).flatMap({ StoredRecord($0.metadata) }),
                record.parts.contains(where: { listed in found.parts.contains { $0.part.id == listed.id } })
            else { return false }
            var response = record.response
            response.body = .complete(length: total)
            response.head.headerFields[.contentLength] = String(total)
            return try put(response, record.parts)
        }
    }
}
