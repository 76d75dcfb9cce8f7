extension PartialBody {
    /// The body piece by piece from an offset on, including the pieces that its writer, of this process or another, has
    /// yet to add.
    ///
    /// It ends when the body is complete and committed. The last piece may have to wait for that, as only the commit
    /// shows that the digest is right.
    /// - Parameter offset: the first byte to read, 0 or more. Default: the first byte.
    /// - Returns: pieces of at most 256 KiB, each as soon as it is stored. Reading throws `incomplete` if the writer
    ///   gave the body up or died before it added the next byte, `gone` if the body was removed, displaced or replaced,
    ///   `io`, `closed`, and `CancellationError` in a cancelled task.
    public func follow(from offset: Int64 = 0) -> some AsyncSequence<[UInt8], any Error> & Sendable {
        chunks(from: offset)
    }

    /// As `follow(from:)`, for callers that name the type.
    package func chunks(from offset: Int64) -> PartialChunks {
        PartialChunks(body: self, offset: min(max(0, offset), Store.maximumLength))
    }
}

/// The pieces of a body in progress, in order, as they arrive. See ``PartialBody/follow(from:)``.
package struct PartialChunks: AsyncSequence, Sendable {
    let body: PartialBody
    let offset: Int64

    /// Starts at the offset.
    package func makeAsyncIterator() -> Iterator { Iterator(body, offset) }

    /// The position of the reader.
    package struct Iterator: AsyncIteratorProtocol, Sendable {
        private let body: PartialBody
        private var offset: Int64
        private var available: StoredRanges
        private var total: Int64?
        private var token: StagingToken
        /// The complete body, where its bytes are in another file than those that were written.
        private var complete: Body?
        private var isOver = false
        private var pause = Self.shortest

        private static let size: Int64 = 256 << 10
        private static let shortest = Duration.milliseconds(5)
        private static let longest = Duration.milliseconds(250)

        init(_ body: PartialBody, _ offset: Int64) {
            self.body = body
            self.offset = offset
            available = body.available
            total = body.total?.bytes
            token = body.token
        }

        /// The next piece; nil at the end.
        package mutating func next() async throws -> [UInt8]? {
            while true {
                try Task.checkCancellation()
                let end = Swift.min(available.end(from: offset), offset + Self.size)
                if end > offset {
                    let piece = try await read(offset..<end)
                    offset = end
                    return piece
                }
                if isOver {
                    if offset >= total ?? 0 { return nil }
                    throw incomplete
                }
                if let work = body.work { try await wait(for: work) } else { try await look() }
            }
        }

        private func read(_ range: Range<Int64>) async throws -> [UInt8] {
            if let complete { return try await complete.bytes(in: range) }
            let (file, available) = (body.file, available)
            return try await IOPool.shared.run {
                try PartialBody.bytes(in: range, of: file, available, path: nil)
            }
        }

        // MARK: A writer of this process

        private mutating func wait(for work: PartialWork) async throws {
            let offset = offset
            let pause = Self.longest
            // An idle writer does not hear that its body was removed.
            let isWoken = await withTaskGroup(of: Bool.self) { group in
                group.addTask {
                    await work.wait(for: offset)
                    return true
                }
                group.addTask {
                    // Cancelled as soon as the other one is done.
                    try? await Task.sleep(for: pause)
                    return false
                }
                defer { group.cancelAll() }
                return await group.next() ?? true
            }
            try Task.checkCancellation()
            if !isWoken { try await body.store.engine.writing?.partials.endIfGone(work) }
            // Before the ranges: then none is missed.
            let ending = work.ending
            let progress = work.progress
            (available, total) = (progress.ranges, progress.total)
            if available.end(from: offset) > offset { return }
            switch ending {
            case nil: return
            case .committed?: isOver = true
            case .gone?, .cancelled?: throw work.gone
            case .suspended?, .closed?: throw incomplete
            }
        }

        // MARK: A writer of another process

        private enum Seen {
            case partial(PartialLookups.Found)
            case complete(length: Int64)
            case other(Entry)
            case nothing
        }

        /// Checks whether the index has more, at growing intervals.
        private mutating func look() async throws {
            var found = try await seen()
            if case .partial(let partial) = found, !partial.isBeingWritten {
                // It may have told of something between the two looks at it.
                found = try await seen()
            }
            switch found {
            case .partial(let partial):
                let isMore = partial.progress.ranges.end(from: offset) > offset
                (available, total, token) = (partial.progress.ranges, partial.progress.total, partial.head.token)
                if isMore {
                    pause = Self.shortest
                } else if partial.isBeingWritten {
                    try await Task.sleep(for: pause)
                    pause = Swift.min(pause * 2, Self.longest)
                } else {
                    throw incomplete
                }
            case .complete(let length): try finish(length)
            case .other(let entry):
                guard try await isSame(entry.body) else { throw gone }
                complete = entry.body
                try finish(entry.body.length.bytes)
            case .nothing: throw gone
            }
        }

        private mutating func finish(_ length: Int64) throws {
            available = StoredRanges()
            available.insert(0..<length)
            total = length
            isOver = true
        }

        private func seen() async throws -> Seen {
            let (body, token) = (body, token)
            return try await IOPool.shared.run {
                let store = body.store
                try store.requireOpen()
                if let found = try store.engine.partials.look(body.key, store.version) {
                    return found.record.blob == body.blob ? .partial(found) : .nothing
                }
                if let length = try store.engine.partials.length(body.key, completedBy: token) {
                    return .complete(length: length)
                }
                let visibility = Lookups.Visibility(version: store.version, includesExpired: true, isCounted: false)
                return try store.engine.lookups.get(body.key, visibility).map { .other($0) } ?? .nothing
            }
        }

        /// True if a complete body is what was written to the file: its writer may have found the same bytes stored
        /// already, or moved them into the index. All of it is compared, as another put of the key may begin with what
        /// was read so far.
        private func isSame(_ other: Body) async throws -> Bool {
            let length = other.length.bytes
            if let total, total != length { return false }
            if length < Swift.max(offset, available.end) { return false }
            let file = body.file
            return try await IOPool.long.run {
                guard try FileSystem.status(file.descriptor, path: nil).size >= file.fileLength(length) else {
                    return false
                }
                var whole = StoredRanges()
                whole.insert(0..<length)
                for start in stride(from: 0, to: length, by: Int(Self.size)) {
                    let piece = start..<Swift.min(start + Self.size, length)
                    let mine = try PartialBody.bytes(in: piece, of: file, whole, path: nil)
                    if try other.bytes(in: piece) != mine { return false }
                }
                return true
            }
        }

        private var incomplete: LarderError {
            LarderError(
                .incomplete,
                "the body in progress of \(body.key) has no byte at \(offset), and no writer that brings it",
                key: body.key)
        }

        private var gone: LarderError {
            LarderError(
                .gone, "the body in progress of \(body.key) was removed, displaced or replaced by another put",
                key: body.key)
        }
    }
}
