import LMDB

extension Store {
    /// The attributes of the selected entries, a batch at a time: memory stays bounded, and the listing may or may not
    /// include entries put or removed while it runs. It includes everything that this process put before it starts. The
    /// index is read on a thread that may wait for the disk.
    ///
    /// The entries are in the order of their keys, those over 478 bytes by their first 478; `.tag` in the order in
    /// which the keys were first put, `.expired` in the order of expiry, `.pinned` in the order of use; a selection
    /// with `||` in the order of its parts, each entry once. Entries of policy `memoryOnly` come first, in no order.
    /// In an encrypted store no entries are in the order of their keys, and a prefix or a host looks at every entry.
    /// Entries of other application versions are listed only for a selection that contains `otherVersions` or
    /// `version`.
    ///
    /// Waits for the commit of the pending changes of this process.
    /// - Parameter selection: the entries to list. Default: all.
    /// - Throws: `closed`, `io`; and while the sequence is read `closed`, `io`, `corruption`, and `CancellationError`
    ///   in a cancelled task.
    public func entries(
        _ selection: Selection = .all
    ) throws -> some AsyncSequence<Attributes, any Error> & Sendable {
        try listing(selection)
    }

    private func listing(_ selection: Selection) throws -> Entries {
        try requireOpen()
        return Entries(store: self, filter: try engine.descriptions.filter(selection, version: version))
    }

    /// The keys of the selected entries, in the order of `entries`. All of them are in memory at once.
    /// - Parameter selection: the entries to list. Default: all.
    /// - Throws: `closed`, `io`, `corruption`.
    @available(*, noasync, message: "Use `perform`, which waits off the cooperative threads.")
    public func keys(_ selection: Selection = .all) throws -> [Key] {
        var keys: [Key] = []
        try forEach(selection) { keys.append($0.key) }
        return keys
    }

    /// Calls `body` with the attributes of each selected entry, in the order of `entries`.
    /// - Parameters:
    ///   - selection: the entries to visit. Default: all.
    ///   - body: may call the store. Throw from it to stop.
    /// - Throws: `closed`, `io`, `corruption`, and the errors of `body`.
    @available(*, noasync, message: "Read `entries`, or use `perform`, which waits off the cooperative threads.")
    public func forEach(_ selection: Selection = .all, _ body: (Attributes) throws -> Void) throws {
        var batches = try listing(selection).makeBatches()
        engine.commitPending()
        while let batch = try batches.next() {
            for attributes in batch { try body(attributes) }
        }
    }
}

/// Selected entries of a store, as an asynchronous sequence.
private struct Entries: AsyncSequence, Sendable {
    let store: Store
    let filter: EntryFilter

    func makeAsyncIterator() -> Iterator { Iterator(batches: makeBatches()) }

    func makeBatches() -> Batches { Batches(store: store, walk: EntryWalk(filter)) }

    struct Iterator: AsyncIteratorProtocol {
        private var batches: Batches
        private var hasBegun = false
        private var batch: [Attributes] = []
        private var position = 0

        init(batches: Batches) { self.batches = batches }

        mutating func next() async throws -> Attributes? {
            while position == batch.count {
                try Task.checkCancellation()
                if !hasBegun {
                    hasBegun = true
                    await batches.store.engine.commitPending()
                }
                let (more, rest) = try await IOPool.shared.run { [batches] in
                    var batches = batches
                    return (try batches.next(), batches)
                }
                guard let more else { return nil }
                (batches, batch, position) = (rest, more, 0)
            }
            defer { position += 1 }
            return batch[position]
        }
    }

    /// The listing in batches.
    struct Batches: Sendable {
        let store: Store
        var walk: EntryWalk
        private var hasLookedIntoMemory = false

        init(store: Store, walk: EntryWalk) {
            self.store = store
            self.walk = walk
        }

        mutating func next() throws -> [Attributes]? {
            try Cancellation.check()
            try store.requireOpen()
            if !hasLookedIntoMemory {
                hasLookedIntoMemory = true
                let found = try store.engine.descriptions.inMemory(walk.filter)
                if !found.isEmpty { return try found.map { try store.engine.descriptions.attributes(ofMemory: $0) } }
            }
            guard !walk.isOver else { return nil }
            let engine = store.engine
            let includesPartial = walk.filter.namesIncomplete
            var found: [Attributes] = []
            _ = try engine.read { transaction in
                try walk.visit(engine.index, transaction, limit: 256) { key, _, raw in
                    let attributes = try engine.descriptions.attributes(
                        raw, key, transaction, includesPartial: includesPartial)
                    if let attributes { found.append(attributes) }
                }
            }
            return found
        }
    }
}
