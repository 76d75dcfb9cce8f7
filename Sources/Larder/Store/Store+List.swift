import LMDB

extension Store {
    /// The attributes of the selected entries, a batch at a time: memory stays bounded, and entries put or removed
    /// meanwhile may or may not be seen. Everything put before by this process is seen.
    ///
    /// In order of their keys, those over 478 bytes by their first 478; `.tag` in the order in which the keys were
    /// first put, `.expired` in the order of expiry. Entries of policy `memoryOnly` come first, in no order. Entries of
    /// other application versions are listed for `.otherVersions` only.
    public func entries(_ selection: Selection = .all) throws -> Entries {
        try requireOpen()
        engine.commitPending()
        return Entries(store: self, selection: selection)
    }

    /// The keys of the selected entries, in the order of `entries`.
    public func keys(_ selection: Selection = .all) throws -> [Key] {
        var keys: [Key] = []
        try forEach(selection) { keys.append($0.key) }
        return keys
    }

    /// Calls `body` with the attributes of each selected entry, in the order of `entries`. Throw from it to stop.
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
    let selection: Selection

    /// Starts with the first key.
    public func makeAsyncIterator() -> Iterator { Iterator(batches: makeBatches()) }

    func makeBatches() -> Batches {
        Batches(
            store: store, walk: EntryWalk(selection, version: store.version, now: store.engine.clock.now()),
            selection: selection,
            memory: store.engine.memory.all)
    }

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
        let selection: Selection
        var memory: [PendingPut]

        mutating func next() throws -> [Attributes]? {
            try store.requireOpen()
            if !memory.isEmpty {
                let now = store.engine.clock.now()
                let found = memory.filter { put in
                    selection.includes(put.key, put.asRecord, version: store.version, now: now)
                        && (selection.tagName.map { put.options.tags.contains($0) } ?? true)
                }
                memory = []
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
