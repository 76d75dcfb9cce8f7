import LMDB

extension Store {
    /// The attributes of the selected entries, a batch at a time: memory stays bounded, and entries put or removed
    /// meanwhile may or may not be seen. Everything put before by this process is seen.
    ///
    /// In order of their keys, those over 478 bytes by their first 478; `.tag` in the order in which the keys were
    /// first put, `.expired` in the order of expiry, `.pinned` in the order of use; a selection with `||` in the order
    /// of its parts, each entry once. Entries of policy `memoryOnly` come first, in no order. Entries of other
    /// application versions are listed only for a selection that has `otherVersions` or `version` in it.
    ///
    /// Waits for the commit of what this process has pending.
    /// - Parameter selection: which entries. Default: all.
    /// - Throws: `closed`, `io`; and while the sequence is read `closed`, `io`, `corruption`, and `CancellationError`
    ///   in a cancelled task.
    public func entries(_ selection: Selection = .all) throws -> Entries {
        try requireOpen()
        engine.commitPending()
        return Entries(store: self, filter: try engine.filter(selection, version: version))
    }

    /// The keys of the selected entries, in the order of `entries`. All of them are in memory at once.
    /// - Parameter selection: which entries. Default: all.
    /// - Throws: `closed`, `io`, `corruption`.
    public func keys(_ selection: Selection = .all) throws -> [Key] {
        var keys: [Key] = []
        try forEach(selection) { keys.append($0.key) }
        return keys
    }

    /// Calls `body` with the attributes of each selected entry, in the order of `entries`.
    /// - Parameters:
    ///   - selection: which entries. Default: all.
    ///   - body: may call the store. Throw from it to stop.
    /// - Throws: `closed`, `io`, `corruption`, and what `body` throws.
    public func forEach(_ selection: Selection = .all, _ body: (Attributes) throws -> Void) throws {
        var entries = try entries(selection).makeBatches()
        while let batch = try entries.next() {
            for attributes in batch { try body(attributes) }
        }
    }
}

/// Selected entries of a store, as an asynchronous sequence.
public struct Entries: AsyncSequence, Sendable {
    /// An entry's attributes.
    public typealias Element = Attributes

    let store: Store
    let filter: EntryFilter

    /// Starts with the first key.
    public func makeAsyncIterator() -> Iterator { Iterator(batches: makeBatches()) }

    func makeBatches() -> Batches { Batches(store: store, walk: EntryWalk(filter)) }

    /// Where the listing is.
    public struct Iterator: AsyncIteratorProtocol {
        var batches: Batches
        private var batch: [Attributes] = []
        private var position = 0

        init(batches: Batches) { self.batches = batches }

        /// The next entry; nil after the last. Errors: `io`, `closed`, `corruption`.
        public mutating func next() async throws -> Attributes? {
            while position == batch.count {
                try Task.checkCancellation()
                guard let more = try batches.next() else { return nil }
                batch = more
                position = 0
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
            try store.requireOpen()
            if !hasLookedIntoMemory {
                hasLookedIntoMemory = true
                let found = try store.engine.inMemory(walk.filter)
                if !found.isEmpty { return try found.map(store.engine.attributes(ofMemory:)) }
            }
            guard !walk.isOver else { return nil }
            let engine = store.engine
            var found: [Attributes] = []
            _ = try engine.read { transaction in
                try walk.visit(engine.index, transaction, limit: 256) { key, record, raw in
                    guard let blob = try transaction.get(engine.index.blobs, record.blob),
                        let attributes = try engine.attributes(raw, blob, key, transaction)
                    else { return }
                    found.append(attributes)
                }
            }
            return found
        }
    }
}
