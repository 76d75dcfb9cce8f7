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
            await attempt(pending.primary) { _ = try await responses.update(old, to: update.response) }
            found[update.index].response = update.response
        }
        for index in decision.removals {
            let old = found[index]
            await attempt(pending.primary) { _ = try await responses.remove(old) }
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
                let hasMore = try await store.perform { [responses, store] in
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
                try await store.remove(.tag(Self.tag(group: group, origin: invalidation.origin)))
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
    private func attempt(_ key: String?, _ body: @escaping @Sendable () async throws -> Void) async {
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

    // MARK: Tags

    /// The tag of a group (RFC 9875 section 2), which belongs to one origin; a digest where the name is too long.
    static func tag(group: String, origin: String) -> String {
        let tag = "group \(origin) \(group)"
        return tag.utf8.count <= 200 && !tag.utf8.contains(0)
            ? tag : "group " + Digest.of(Array(tag.utf8)).description
    }

    /// The tags of a new response: its groups, what its tag fields name, and the caller's.
    func tags(of new: NewResponse, primary: String, own: [String]) -> [String] {
        var tags = own
        if !new.groups.isEmpty, let slashes = primary.firstRange(of: "://") {
            let start =
                primary[..<slashes.lowerBound].lastIndex(of: " ").map(primary.index(after:)) ?? primary.startIndex
            let origin = String(
                primary[start...].prefix(upTo: primary[slashes.upperBound...].firstIndex(of: "/") ?? primary.endIndex))
            tags += new.groups.map { Self.tag(group: $0, origin: origin) }
        }
        for name in context.configuration.tagFields {
            for value in new.head.headerFields[values: name] {
                tags += value.split { $0 == "," || $0 == " " || $0 == "\t" }.map(String.init)
            }
        }
        var room = TagRoom()
        return tags.filter { (1...200).contains($0.utf8.count) && !$0.utf8.contains(0) && room.take($0) }
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
    await Task { await body() }.value
}
