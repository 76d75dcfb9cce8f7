import HTTPCaching
import HTTPTypes
import Larder
import Locks

/// Answering with a response that another process has begun to load: a long or slow one, whose end no client should
/// wait for, and which no origin should send twice.
extension Loader {
    /// What another process brings for a request.
    enum Arriving {
        /// Nothing that can be read before its end.
        case nothing
        /// A response that this request may not have.
        case unusable
        /// With its bytes as they come.
        case response(FetchResponse)
    }

    /// Looks for a response to a request that another process is writing to the store.
    func arriving(_ pending: LoadRequest) async throws -> Arriving {
        guard let primary = pending.primary else { return .nothing }
        let responses = changes.responses
        let all = try await changes.store.performShort { [stalled, search = pending.search] in
            try responses.arriving(primary, search).filter { !stalled.contains($0.part.key) }
        }
        if all.isEmpty { return .nothing }
        let now = context.now
        let stored = all.map(\.whole)
        guard case .serve(let served) = context.rules.reuse(pending.subject, stored: stored, now: now),
            served.stale == nil, served.content == .whole
        else { return .unusable }
        return answer(pending, with: served, all[served.index], now: now)
    }

    /// Removes what processes that died have left of a response that no other process loads.
    func forgetAbandoned(_ pending: LoadRequest) async {
        guard let primary = pending.primary else { return }
        let responses = changes.responses
        _ = try? await changes.store.performShort { [search = pending.search] in try responses.arriving(primary, search)
        }
    }

    private func answer(
        _ pending: LoadRequest, with served: ServedResponse, _ arriving: ResponseStore.Arriving, now: Instant
    ) -> Arriving {
        let (stored, part, total) = (arriving.response, arriving.part, arriving.total)
        var head = served.head
        let status = context.rules.cacheStatus(
            forwarded: pending.forwardedRequest, receivedStatus: stored.head.status.code,
            sentStatus: head.status.code, stored: stored.policy, isCollapsed: true, now: now)
        builder.finish(&head.headerFields, status)
        let body = ArrivingBody(part.chunks(from: 0), total: total, timeout: pending.plan.timeouts.read) {
            [self] offset, why in
            if why == .timedOut { stalled.insert(part.key) }
            return try await rest(of: arriving, from: offset, for: pending)
        }
        return .response(
            FetchResponse(
                .objects(head), body: ResponseBody(length: total) { try await body.next() }, source: .network,
                storedStatus: nil, originStatus: stored.head.status.code, ageSeconds: served.ageMilliseconds / 1_000,
                freshSeconds: status.ttlSeconds, cacheStatus: context.configuration.addsCacheStatus ? status : nil,
                isStored: true))
    }

    /// What is left of a response that its process has finished meanwhile, or given up, or that died or hangs with it.
    private func rest(
        of arriving: ResponseStore.Arriving, from offset: Int64, for pending: LoadRequest
    ) async throws -> ResponseBody {
        let (responses, stored, total) = (changes.responses, arriving.response, arriving.total)
        let found = try await changes.store.performShort { [pending] in
            try responses.peek(arriving.primary, for: pending.subject.headerFields)
        }
        // The same one by the time that it came.
        if let same = found.first(where: { $0.response.responseTime == stored.responseTime }),
            let end = total ?? (same.response.body.isComplete ? same.response.body.total : nil), end >= offset
        {
            if offset == end { return .empty }
            let segments = same.segments(offset..<end)
            if !segments.isEmpty { return ResponseBody(segments) }
        }
        // Another answer of the origin may be another response, whose end does not fit.
        guard let validator = stored.strongValidator else {
            throw FetchError(.origin, url: pending.request.url, "another process loaded it, and stopped before its end")
        }
        // What a process that died has left is of no use to anyone else.
        await forgetAbandoned(pending)
        var sent = pending.forwardedRequest.sent
        sent.headerFields[fields: .ifRange] = [HTTPField(name: .ifRange, value: validator)]
        return try await loadGap(from: offset, to: total, of: stored.head, sent: sent, for: pending)
    }
}

extension ResponseStore {
    /// A whole response that a process is writing, and the part that it writes to.
    struct Arriving: Sendable {
        let response: StoredResponse
        let part: PartialBody
        /// The primary key of the response.
        let primary: String

        /// The length of both, in bytes; nil if it is not known.
        var total: Int64? { response.body.total }

        /// The response as it will be, for requests of the whole.
        var whole: StoredResponse {
            var whole = response
            whole.body = .complete(length: total ?? 0)
            return whole
        }
    }

    /// The whole responses that processes are writing under a key, as variants of it too, and those with
    /// `No-Vary-Search` that answer its query. May wait.
    func arriving(_ primary: String, _ search: SearchScope?) throws -> [Arriving] {
        var keys: [(key: Key, primary: String)] = []
        func add(_ prefix: Key, _ primary: (StoredResponse, Key) -> String?) throws {
            try store.forEach(.prefix(prefix) && .incomplete) { entry in
                guard let head = StoredPart.head(of: entry.metadata), let primary = primary(head, entry.key) else {
                    return
                }
                keys.append((entry.key, primary))
            }
        }
        for prefix in [StoredKeys.partPrefix(of: Key(primary)), Key(primary + VariantIndex.separator)] {
            try add(prefix) { _, _ in primary }
        }
        if let search {
            try add(Key(search.prefix)) { response, key in
                guard let primary = URLVariation(of: response.head).map(search.primary) else { return nil }
                let owner = StoredPart.owner(of: key)
                let isMeant = owner == Key(primary) || owner.hasPrefix(Key(primary + VariantIndex.separator))
                return isMeant ? primary : nil
            }
        }
        var found: [Arriving] = []
        for (key, primary) in keys {
            // What a record lists is no longer arriving: loads of ranges may write to it.
            let owner = StoredPart.owner(of: key)
            guard try !parts(at: owner).contains(where: { $0.key(owner) == key }),
                let part = try store.partialBody(of: key), let response = StoredPart.head(of: part.metadata)
            else { continue }
            if part.isBeingWritten {
                found.append(Arriving(response: response, part: part, primary: primary))
            } else {
                // Its process died. No other load will continue it.
                try store.remove(key)
            }
        }
        return found
    }
}

/// The parts whose processes have stopped writing without an end: a process that was suspended holds its locks.
final class StalledParts: Sendable {
    private let keys = Mutex<Set<Key>>([])

    func contains(_ key: Key) -> Bool { keys.withLock { $0.contains(key) } }

    func insert(_ key: Key) {
        keys.withLock { keys in
            if keys.count >= 1_024 { keys.removeAll() }
            keys.insert(key)
        }
    }
}

/// A body that another process brings, and the rest of it from elsewhere if that one does not.
private final class ArrivingBody: Sendable {
    /// Why the other process brings no more.
    enum End {
        case over
        case timedOut
    }

    private struct State: Sendable {
        var chunks: PartialChunks.Iterator
        var offset: Int64 = 0
        var rest: ResponseBody.Iterator?
    }

    private let state: Mutex<State>
    private let total: Int64?
    private let timeout: Duration
    private let load: @Sendable (Int64, End) async throws -> ResponseBody

    /// - Parameters:
    ///   - timeout: how long a piece is waited for.
    ///   - load: the bytes from a position on.
    init(
        _ chunks: PartialChunks, total: Int64?, timeout: Duration,
        load: @escaping @Sendable (Int64, End) async throws -> ResponseBody
    ) {
        state = Mutex(State(chunks: chunks.makeAsyncIterator()))
        self.total = total
        self.timeout = timeout
        self.load = load
    }

    /// The next piece; nil at the end. For one reader at a time.
    func next() async throws -> [UInt8]? {
        var (chunks, offset, rest) = state.withLock { ($0.chunks, $0.offset, $0.rest) }
        // What follows the last byte is the commit of the other process. Only an unknown length is waited for.
        if offset == total { return nil }
        var piece: [UInt8]?
        if rest == nil {
            do {
                if let found = try await Self.next(chunks, within: timeout) {
                    (piece, chunks) = found
                } else {
                    rest = try await load(offset, .timedOut).makeAsyncIterator()
                }
            } catch let error as LarderError where [.incomplete, .gone].contains(error.code) {
                rest = try await load(offset, .over).makeAsyncIterator()
            }
        }
        if rest != nil { piece = try await rest?.next() }
        offset += Int64(piece?.count ?? 0)
        let reached = State(chunks: chunks, offset: offset, rest: rest)
        state.withLock { $0 = reached }
        return piece
    }

    /// The next piece, and the reading behind it; nil if none comes in time.
    private static func next(
        _ chunks: PartialChunks.Iterator, within timeout: Duration
    ) async throws -> ([UInt8]?, PartialChunks.Iterator)? {
        try await withThrowingTaskGroup(of: ([UInt8]?, PartialChunks.Iterator)?.self) { group in
            group.addTask {
                var chunks = chunks
                let piece = try await chunks.next()
                return (piece, chunks)
            }
            group.addTask {
                try await Task.sleep(for: timeout)
                return nil
            }
            defer { group.cancelAll() }
            return try await group.next() ?? nil
        }
    }
}
