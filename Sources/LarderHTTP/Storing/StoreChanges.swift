import HTTPCaching
import HTTPTypes
import Larder

/// Changes what is stored: what a response changes in addition to being stored, and what is removed by hand.
struct StoreChanges: Sendable {
    let context: CacheContext
    let store: Store
    let responses: ResponseStore
    let generations: Generations
    let watch: StoreWatch

    /// Applies updates and removals; returns what was found with the updates in it.
    func apply(_ decision: ReceivedDecision, to pending: LoadRequest) async -> [ResponseStore.Found] {
        var found = pending.found
        for update in decision.updates {
            let old = found[update.index]
            let primary = pending.primary ?? ""
            let tags = tags.updated(
                old.entry.attributes.tags, from: old.response, to: update.response, primary: primary)
            if tags == nil { logTags(primary) }
            await attempt(primary) {
                if let tags {
                    _ = try await responses.update(old, to: update.response, tags: tags)
                } else {
                    _ = try await responses.remove(old)
                }
            }
            found[update.index].response = update.response
        }
        for index in decision.removals {
            let old = found[index]
            await attempt(pending.primary) { _ = try await responses.remove(old) }
        }
        if !decision.removals.isEmpty, let primary = pending.primary {
            await attempt(primary) { try await responses.supersedeMembersIfPresent(primary) }
        }
        return found
    }

    /// Section 4.4, and RFC 9875 section 3.
    func invalidate(_ invalidation: Invalidation, _ keyPolicy: KeyPolicy) async {
        for key in invalidation.keys {
            let primary = keyPolicy.uri(key)
            let scope = generations.scope(of: key, keyPolicy)
            generations.advance(primary, scope)
            await generations.commitsEnd(under: [primary] + (scope.map { [$0.listKey] } ?? []))
            await attempt(primary) {
                let more = Self.withAdditions(primary)
                let hasMore = try await store.performShort { [responses, store] in
                    _ = try responses.removeAll(primary)
                    if let scope { _ = try responses.removeShared(scope) }
                    // Usually there is none. The removal waits for a commit, and for long jobs.
                    return try store.mayHave(more, prefix: Key(primary + " "))
                }
                if hasMore { try await store.remove(more) }
            }
        }
        for group in invalidation.groups {
            generations.advanceAll()
            await generations.commitsEnd()
            await attempt(group) {
                try await store.remove(.tag(ResponseTags.tag(group: group, origin: invalidation.origin)))
            }
        }
    }

    /// The keys of a URI to which a policy has added something, the cache's own or that of one request: they start with
    /// the URI and a space, which no URI has. What several queries share is the business of its scope.
    static func withAdditions(_ primary: String) -> Selection {
        .prefix(Key(primary + " ")) && !.prefix(Key(primary + " search="))
    }

    /// A store in trouble does not keep the answer from the client, nor does a client that leaves keep a change from
    /// the store.
    func attempt(_ key: String?, _ body: @escaping @Sendable () async throws -> Void) async {
        await carryThrough {
            do {
                try await body()
            } catch {
                watch.failed(.write, error, key: key ?? "")
            }
        }
    }

    /// The store did not take a response.
    func logRefusal(_ error: any Error, _ key: String) { watch.failed(.write, error, key: key) }

    /// The rules did not let a response be stored.
    func logObstacle(_ obstacle: StoringObstacle, _ url: @autoclosure () -> String) {
        context.configuration.logger.debug(
            "a response is not stored",
            metadata: ["category": "storing", "url": "\(url())", "why": "\(obstacle.rawValue)"])
    }

    // MARK: Room

    var tags: ResponseTags { ResponseTags(fields: context.configuration.tagFields) }

    /// The response is passed on, and asked for again by the next request.
    func logTags(_ primary: String) {
        context.configuration.logger.notice(
            "a response has more tags than an entry can have, and is not stored",
            metadata: ["category": "storing", "key": "\(primary)"])
    }

    /// Throws when a body of this length has no place in the store.
    func checkRoom(_ length: Int64, _ key: Key) throws {
        try store.writer(for: key, length: ByteCount(length)).cancel()
    }

    /// Whether a body of this length has a place in the store.
    func hasRoom(_ length: Int64, _ key: Key) throws -> Bool {
        do {
            try checkRoom(length, key)
            return true
        } catch let error as LarderError where error.code == .tooLarge {
            return false
        }
    }
}

/// Runs `body` to its end in a task that is not cancelled with the caller's: the store refuses to begin for a cancelled
/// task, and what a load brought before it was given up is stored all the same.
func carryThrough<R: Sendable>(_ body: @escaping @Sendable () async -> R) async -> R {
    await Task(executorPreference: LoadExecution.executor) { await body() }.value
}
