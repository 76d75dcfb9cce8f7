import HTTPCaching
import HTTPTypes
import Larder

/// A response on its way into the store.
///
/// A whole one is written under its own key. The bytes of a range go to a part, an entry which the response's record
/// lists when they are there: at their position in a part in progress, or to one of their own.
struct Storing: Sendable {
    private enum Target {
        case whole(BodyWriter)
        /// To an entry of its own under the key of a part with this id.
        case packed(BodyWriter, UInt64)
        case placed(PartSink)
        case followable(FollowableSink)
    }

    let changes: StoreChanges
    private let lookup: Lookup
    let new: NewResponse
    /// Where the bytes go.
    private let target: Target
    let key: Key
    let primary: String
    /// Set for a response that answers several queries.
    private let shared: (variation: URLVariation, scope: SearchScope)?
    let tags: [String]
    let storagePolicy: StoragePolicy
    /// What an invalidation since it was asked for would have changed.
    private let guards: [(key: String, generation: UInt32)]
    private let replaced: [ResponseStore.Found]
    /// As far as it is known before the body has come.
    private let length: Int64?
    /// Whether other processes can follow the body while it arrives.
    var isShown: Bool {
        switch target {
        case .whole, .packed: false
        case .placed: new.announcedRange == nil
        case .followable(let sink): sink.part != nil
        }
    }
    /// Whether they could not continue one that breaks off.
    var isIndispensable: Bool { isShown && !new.policy.hasStrongValidator }

    /// Nil when the store does not accept the response: it is too large or has too many tags, there is no room, or the
    /// store fails. The answer continues without it.
    /// - Parameter isAwaited: whether other processes may wait for the response.
    init?(
        changes: StoreChanges, lookup: Lookup, pending: LoadRequest, new: NewResponse, found: [ResponseStore.Found],
        length: Int64?, isAwaited: Bool
    ) async {
        guard let own = pending.primary else { return nil }
        self.changes = changes
        self.lookup = lookup
        self.new = new
        self.length = length
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
        let tags = changes.tags.all(of: new.head, groups: new.groups, primary: primary, own: pending.plan.tags)
        guard let tags else {
            changes.logTags(primary)
            return nil
        }
        self.tags = tags
        if let range = new.announcedRange, let combined = new.combines,
            found[combined].response.body.available.contains(range)
        {
            return nil
        }
        do {
            key = try await changes.responses.key(for: new.selecting, primary: primary)
            replaced = new.replaces.map { found[$0] }.filter { [key] in $0.key != key }
            // What has to be validated they may not have.
            let isFollowable =
                isAwaited && new.announcedRange == nil && storagePolicy != .memoryOnly
                && new.policy.isFresh(at: changes.context.now) && !new.policy.flags.contains(.noCache)
            if isFollowable, let length, length > Loader.longestAwaited,
                let whole = try PlacedPart(whole: new, length: length, at: key, storagePolicy, changes)
            {
                target = .placed(
                    whole.sink(changes, tags: tags) { [guards] in Self.areCurrent(guards, changes.generations) })
                return
            }
            if let part = try PlacedPart(new, length: length, at: key, storagePolicy, changes) {
                target = .placed(
                    part.sink(changes, tags: tags) { [guards] in Self.areCurrent(guards, changes.generations) })
                return
            }
            let id = new.announcedRange.map { _ in UInt64.random(in: .min ... .max) }
            let entryKey = id.map { [key] in StoredPart.key(key, $0) } ?? key
            // Not declared to the writer: a body that is cut off may still be stored as a part.
            let writer = try changes.store.writer(for: entryKey, PutOptions(storagePolicy: storagePolicy))
            target =
                if let id {
                    .packed(writer, id)
                } else {
                    isFollowable ? .followable(FollowableSink(writer)) : .whole(writer)
                }
            if let length { try changes.checkRoom(length, entryKey) }
        } catch {
            changes.logRefusal(error, primary)
            return nil
        }
    }

    /// What the load writes to.
    var sink: BodySink {
        switch target {
        case .whole(let writer), .packed(let writer, _): .body(writer)
        case .placed(let sink): .part(sink)
        case .followable(let sink): .followable(sink)
        }
    }

    /// Whether ``store(_:)`` may be called.
    var takesWhole: Bool {
        switch target {
        case .whole, .followable: true
        case .packed, .placed: false
        }
    }

    /// Stores a whole body that is in memory; returns whether it is stored.
    func store(_ body: [UInt8]) async -> Bool {
        do {
            if try !sink.writeInMemory(body) { try await sink.write([body]) }
        } catch {
            await cancel(error)
            return false
        }
        return await carryThrough { await commit(receivedBytes: Int64(body.count), isComplete: true).isStored }
    }

    /// Lets other processes follow the body from now on; false if they cannot. Not during a write.
    /// - Parameter count: the bytes that were written.
    func show(_ count: Int64) async -> Bool {
        if isShown { return true }
        guard case .followable(let sink) = target else { return false }
        do {
            guard let whole = try PlacedPart(whole: new, length: length, at: key, storagePolicy, changes) else {
                return false
            }
            let part = whole.sink(changes, tags: tags) { isCurrent }
            do {
                try await sink.move(count, to: part)
                return true
            } catch {
                try await release(part)
                throw error
            }
        } catch {
            changes.logRefusal(error, primary)
            return false
        }
    }

    /// Ends: stores what came, if it is worth keeping. After it the next request finds it.
    ///
    /// - Returns: whether the response is in parts that are the whole now, so that ``settle(isWhole:)`` is to join
    ///   them.
    func finish(receivedBytes: Int64, isComplete: Bool) async -> Bool {
        await commit(receivedBytes: receivedBytes, isComplete: isComplete).isWhole
    }

    private func commit(receivedBytes: Int64, isComplete: Bool) async -> (isStored: Bool, isWhole: Bool) {
        // Only the end of a message without a length shows whether it agrees with `Content-Range`.
        let isPlausible = isComplete || new.announcedRange == nil || length != nil
        guard isPlausible, let response = new.finished(receivedBytes: receivedBytes, isComplete: isComplete),
            let commit = changes.generations.beginCommit(guards)
        else {
            await drop()
            return (false, false)
        }
        defer { changes.generations.endCommit(commit) }
        do {
            if let shared {
                try await changes.store.performShort { try changes.responses.forgetUnlisted(shared.scope) }
            }
            let isStored: Bool
            var isWhole = false
            let range = new.firstPosition..<(new.firstPosition + receivedBytes)
            switch target {
            case .whole(let writer): isStored = try await finish(response, writer)
            case .packed(let writer, let id):
                if isComplete, let placed = try PlacedPart(new, length: receivedBytes, at: key, storagePolicy, changes)
                {
                    (isStored, isWhole) = try await finish(range, of: response, placed, writer)
                } else {
                    (isStored, isWhole) = try await finish(
                        StoredPart(id: id, ranges: ByteRanges([range])), of: response, writer)
                }
            case .placed(let sink): (isStored, isWhole) = try await finish(range, of: response, sink)
            case .followable(let sink):
                if let part = sink.part {
                    // One whose length is not known cannot be continued.
                    let isKept = isComplete || length != nil
                    (isStored, isWhole) = try await isKept ? finish(range, of: response, part) : (false, false)
                } else {
                    isStored = try await finish(response, sink.writer)
                }
            }
            if isStored, key != Key(primary) {
                try await changes.store.performShort {
                    try changes.responses.list(new.selecting, response.policy, at: key, primary: primary)
                }
            }
            if isStored, let shared {
                try await changes.store.performShort {
                    let listed = try changes.responses.list(shared.variation, response.policy, in: shared.scope)
                    lookup.note(listed, of: shared.scope)
                }
            }
            for old in replaced { _ = try await changes.responses.remove(old) }
            if isStored, new.head.status.code != 206 {
                try await changes.responses.supersedeMembersIfPresent(primary)
            }
            changes.watch.succeeded(.write)
            // A purge that does not wait may have looked before it was there.
            if !isCurrent {
                _ = try await changes.store.performShort { try changes.responses.removeAll(primary) }
            }
            return (isStored, isWhole)
        } catch {
            await drop()
            changes.logRefusal(error, primary)
            return (false, false)
        }
    }

    /// Whether nothing was invalidated since it was asked for.
    var isCurrent: Bool { Self.areCurrent(guards, changes.generations) }

    private static func areCurrent(
        _ guards: [(key: String, generation: UInt32)], _ generations: Generations
    ) -> Bool {
        guards.allSatisfy { generations.current($0.key) == $0.generation }
    }

    private func finish(_ response: StoredResponse, _ writer: BodyWriter) async throws -> Bool {
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
            try await changes.store.performShort { try changes.responses.remove(old, of: key) }
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
        let found = try await changes.store.performShort { try changes.responses.findOne(key)?.response }
        return found.map {
            changes.context.rules.areCombinable($0, response)
                && $0.body.available.count >= response.body.available.count
        } ?? false
    }

    /// After the answer has ended: joins the parts, and leaves the part in progress to later loads.
    func settle(isWhole: Bool) async {
        do {
            if isWhole, let commit = changes.generations.beginCommit(guards) {
                defer { changes.generations.endCommit(commit) }
                try await changes.responses.complete(
                    key, primary: primary, storagePolicy: storagePolicy
                ) { [guards, changes] in Self.areCurrent(guards, changes.generations) }
                // As above.
                if !isCurrent {
                    _ = try await changes.store.performShort { try changes.responses.removeAll(primary) }
                }
            }
        } catch {
            changes.logRefusal(error, primary)
        }
        do {
            switch target {
            case .whole, .packed: break
            case .placed(let sink): try await release(sink)
            case .followable(let sink):
                guard let part = sink.part else { break }
                await sink.writer.cancelElsewhere()
                try await release(part)
            }
        } catch {
            changes.logRefusal(error, primary)
        }
    }

    /// Gives up; nothing is stored.
    /// - Parameter error: why the store took no more, if that is why.
    func cancel(_ error: (any Error)?) async {
        if let error { changes.logRefusal(error, primary) }
        await drop()
    }

    /// What a part in progress has stays; whether the part stays, `settle(isWhole:)` decides.
    private func drop() async {
        switch target {
        case .whole(let writer), .packed(let writer, _): await writer.cancelElsewhere()
        case .placed: break
        case .followable(let sink): if sink.part == nil { await sink.writer.cancelElsewhere() }
        }
    }
}
