import HTTPCaching
import HTTPTypes
import Larder

/// A response on its way into the store.
///
/// A whole one is written under its own key. The bytes of a range go to an entry of their own, which the response's
/// record lists when they are there: what is stored already is not touched.
struct Storing: Sendable {
    private let changes: StoreChanges
    private let lookup: Lookup
    let new: NewResponse
    let writer: BodyWriter
    private let key: Key
    /// Set for a range.
    private let partID: UInt64?
    private let primary: String
    /// Set for a response that answers several queries.
    private let shared: (variation: URLVariation, scope: SearchScope)?
    private let tags: [String]
    private let storagePolicy: StoragePolicy
    /// What an invalidation since it was asked for would have changed.
    private let guards: [(key: String, generation: UInt32)]
    private let replaced: [ResponseStore.Found]

    /// Nil when the store does not accept the response: it is too large, there is no room, or the store fails. The
    /// answer continues without it.
    init?(
        changes: StoreChanges, lookup: Lookup, pending: LoadRequest, new: NewResponse, found: [ResponseStore.Found],
        length: Int64?
    ) async {
        guard let own = pending.primary else { return nil }
        self.changes = changes
        self.lookup = lookup
        self.new = new
        storagePolicy = pending.plan.storagePolicy
        if let scope = pending.search, let variation = URLVariation(of: new.head) {
            primary = scope.primary(variation)
            shared = (variation, scope)
            guards = [(own, pending.generation), (scope.listKey, scope.generation)]
        } else {
            primary = own
            shared = nil
            guards = [(own, pending.generation)]
        }
        tags = changes.tags(of: new, primary: primary, own: pending.plan.tags)
        partID = new.announcedRange.map { _ in .random(in: .min ... .max) }
        if let range = new.announcedRange, let combined = new.combines,
            found[combined].response.body.available.contains(range)
        {
            return nil
        }
        do {
            key = try await changes.responses.key(for: new.selecting, primary: primary)
            replaced = new.replaces.map { found[$0] }.filter { [key] in $0.key != key }
            let target = partID.map { [key] in StoredPart.key(key, $0) } ?? key
            // Not declared to the writer: a body that is cut off may still be stored as a part.
            writer = try changes.store.writer(for: target, PutOptions(storagePolicy: storagePolicy))
            if let length { try changes.checkRoom(length, target) }
        } catch {
            changes.logRefusal(error, primary)
            return nil
        }
    }

    /// Ends: stores what came, if it is worth keeping. After it the next request finds it.
    func finish(receivedBytes: Int64, isComplete: Bool) async {
        guard let response = new.finished(receivedBytes: receivedBytes, isComplete: isComplete),
            isCurrent
        else { return await writer.cancelElsewhere() }
        do {
            if let shared { try await changes.store.perform { try changes.responses.forgetUnlisted(shared.scope) } }
            let isStored: Bool
            if let partID {
                let range = new.firstPosition..<(new.firstPosition + receivedBytes)
                isStored = try await finish(StoredPart(id: partID, ranges: ByteRanges([range])), of: response)
            } else {
                isStored = try await finish(response)
            }
            if isStored, key != Key(primary) {
                try await changes.store.perform {
                    try changes.responses.list(new.selecting, response.policy, at: key, primary: primary)
                }
            }
            if isStored, let shared {
                try await changes.store.perform {
                    let listed = try changes.responses.list(shared.variation, response.policy, in: shared.scope)
                    lookup.note(listed, of: shared.scope)
                }
            }
            for old in replaced { _ = try await changes.responses.remove(old) }
            changes.watch.succeeded(.write)
            // Invalidated while it was being committed: that may have looked before it was there.
            if !isCurrent {
                _ = try await changes.store.perform { try changes.responses.removeAll(primary) }
            }
        } catch {
            await writer.cancelElsewhere()
            changes.logRefusal(error, primary)
        }
    }

    /// Whether nothing was invalidated since it was asked for.
    private var isCurrent: Bool { guards.allSatisfy { changes.generations.current($0.key) == $0.generation } }

    private func finish(_ response: StoredResponse) async throws -> Bool {
        if !response.body.isComplete, try await isLess(response) {
            await writer.cancelElsewhere()
            return false
        }
        try writer.use(changes.responses.options(for: response, tags: tags, storagePolicy: storagePolicy))
        let there = try await changes.responses.record(at: key)
        if let there, isOlder(response, than: there.response) {
            await writer.cancelElsewhere()
            return false
        }
        try await writer.commit()
        if let old = there?.parts, !old.isEmpty {
            try await changes.store.perform { try changes.responses.remove(old, of: key) }
        }
        return true
    }

    /// Whether what is stored came while the body of this response was still arriving: then that is the current one.
    private func isOlder(_ response: StoredResponse, than stored: StoredResponse) -> Bool {
        // A time to come is that of a clock that went back since.
        guard stored.responseTime > response.responseTime, stored.responseTime <= changes.context.now,
            !stored.isInvalidated
        else {
            return false
        }
        return stored.body.isComplete || !changes.context.rules.areCombinable(stored, response)
    }

    /// Whether a body that was cut off has fewer bytes than the parts that are there.
    private func isLess(_ response: StoredResponse) async throws -> Bool {
        let found = try await changes.store.perform { try changes.responses.findOne(key)?.response }
        return found.map {
            changes.context.rules.areCombinable($0, response)
                && $0.body.available.count >= response.body.available.count
        } ?? false
    }

    private func finish(_ part: StoredPart, of response: StoredResponse) async throws -> Bool {
        let responses = changes.responses
        try writer.use(
            PutOptions(
                lifetime: responses.lifetime(of: response.policy), storagePolicy: storagePolicy, tags: tags,
                metadata: StoredPart.metadata))
        try await writer.commit()
        return try await changes.store.perform {
            let isAdded = try responses.add(
                part, of: response, isUpdate: new.combines != nil, at: key, primary: primary, now: changes.context.now
            ) { response, parts in
                var options = responses.options(for: response, tags: tags, storagePolicy: storagePolicy)
                options.metadata = StoredRecord(response, parts: parts).encoded
                return options
            }
            if !isAdded { try responses.remove([part], of: key) }
            return isAdded
        }
    }

    /// Combines what has come together, after the answer has ended.
    func combine() async {
        guard partID != nil, isCurrent else { return }
        do {
            try await changes.responses.combine(key, primary: primary, tags: tags, storagePolicy: storagePolicy)
        } catch {
            changes.logRefusal(error, primary)
        }
    }

    /// Gives up; nothing is stored.
    /// - Parameter error: why the store took no more, if that is why.
    func cancel(_ error: (any Error)?) async {
        if let error { changes.logRefusal(error, primary) }
        await writer.cancelElsewhere()
    }
}
