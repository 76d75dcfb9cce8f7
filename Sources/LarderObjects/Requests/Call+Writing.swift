import HTTPTypes
import Larder
import LarderHTTP
import LarderServer

/// PUT and DELETE.
extension Call {
    func write() -> ServiceDecision {
        if request.head.headerFields.contains(.contentRange) {
            // RFC 9110 section 14.4: a server that does not take parts must not take one for the whole.
            return .answer(ServiceAnswer(400, text: "A part of an object cannot be stored."))
        }
        switch path.name {
        case .blob(let digest): return .work { await write(blob: $0, digest) }
        case .result(let key):
            if let length = request.contentLength, length > Int64(ActionResults.limit) {
                return .answer(answer(to: ObjectStore.ContentTooLong(limit: ActionResults.limit)))
            }
            return .work { await write(result: $0, key) }
        case .file(let key): return .work { await write(file: $0, key, created: 201) }
        case .artifact(let key): return .work { await write(file: $0, key, created: 202) }
        case .record(let key): return .work { await write(record: $0, key) }
        case .collection, .status, .artifacts:
            return .answer(ServiceAnswer(405, text: "Nothing can be stored here.", [.allow: "GET, HEAD"]))
        }
    }

    private func stored(_ status: Int) -> ServiceAnswer {
        objects.counters.uploads.add(1, ordering: .relaxed)
        return ServiceAnswer(status)
    }

    private func answered(_ body: () async throws -> ServiceAnswer) async -> ServiceAnswer {
        do { return try await body() } catch { return answer(to: error) }
    }

    private func write(blob content: RequestBody?, _ digest: Digest) async -> ServiceAnswer {
        await answered {
            try await objects.put(content, blob: digest, options)
            return stored(200)
        }
    }

    private func write(result content: RequestBody?, _ key: Key) async -> ServiceAnswer {
        await answered {
            let bytes = try await ObjectStore.gathered(content, limit: ActionResults.limit)
            // It would be a result with nothing in it, and is what is left of one more often.
            if bytes.isEmpty { return ServiceAnswer(400, text: "The result of an action is empty.") }
            try await objects.put(result: bytes, for: key, options)
            return stored(200)
        }
    }

    private func write(file content: RequestBody?, _ key: Key, created: Int) async -> ServiceAnswer {
        await answered {
            let fields = request.head.headerFields
            var options = options
            options.metadata = ObjectNotes(fields).metadata
            guard fields.contains(.ifMatch) || fields.contains(.ifNoneMatch) else {
                try await objects.put(content, for: key, options)
                return stored(created)
            }
            let entry = try await objects.store.get(key)
            if isRefused(entry.map { Self.tag($0.digest) }) { return refused }
            return try await objects.put(content, for: key, inPlaceOf: entry, options) ? stored(created) : refused
        }
    }

    /// Nx: "Cannot override an existing record" (409).
    private func write(record content: RequestBody?, _ key: Key) async -> ServiceAnswer {
        await answered {
            let refusal = ServiceAnswer(409, text: "A record with this name already exists.")
            if try objects.store.contains(key) { return refusal }
            // Another may have been faster.
            return try await objects.put(content, for: key, inPlaceOf: nil, options) ? stored(200) : refusal
        }
    }

    func remove() -> ServiceDecision {
        .work { _ in
            await answered {
                switch path.name {
                case .file(let key), .artifact(let key), .record(let key):
                    // Without a precondition it would be a miss: then that is what it is (RFC 9110 section 13.2.1).
                    guard let entry = try await objects.store.get(key) else { return miss }
                    if isRefused(Self.tag(entry.digest)) { return refused }
                    let fields = request.head.headerFields
                    guard fields.contains(.ifMatch) || fields.contains(.ifNoneMatch) else {
                        return try await objects.store.remove(key) ? ServiceAnswer(204) : miss
                    }
                    return try await objects.store.remove(entry) ? ServiceAnswer(204) : refused
                case .collection, .blob, .result, .status, .artifacts: return ServiceAnswer(405)
                }
            }
        }
    }
}
