import CachectlCore
import Larder
import LarderHTTP
import LarderPackages

/// The entries that a selection stands for on the command line: what `ls` shows of it. Commands that change or write
/// entries take the same ones, so that none changes what the user could not see.
struct ListedEntries {
    private let store: Store
    private let selection: Selection
    /// True to take in what belongs to others: lists of variants, parts of responses, records of packages.
    private let isEverything: Bool

    init(_ store: Store, _ selection: Selection?, isEverything: Bool = false) {
        self.store = store
        // Only a selection that names them lists bodies in progress: parts are such.
        self.selection = isEverything ? (selection ?? .all) && (.incomplete || !.incomplete) : selection ?? .all
        self.isEverything = isEverything
    }

    func forEach(_ body: (Attributes) throws -> Void) throws {
        try store.forEach(selection) { entry in
            try Interruption.check()
            if isListed(entry) { try body(entry) }
        }
    }

    /// Changes every selected entry, and with a response what leads to it and what it consists of: the list of its
    /// URL's variants, and its parts.
    /// - Parameter reachesOthers: false where the others do not need the change: a pin that is taken away, as another
    ///   variant may have one.
    /// - Returns: how many selected entries there were.
    func changeAll(reachesOthers: Bool = true, _ add: (inout WriteBatch, Key) -> Void) throws -> Int {
        var count = 0
        var lists: Set<Key> = []
        var others: [Key] = []
        func note(_ entry: Attributes) throws {
            guard reachesOthers, let response = ResponseSummary(entry) else { return }
            if response.primaryKey != entry.key { lists.insert(response.primaryKey) }
            if !response.isComplete { others += try StoredVariants.parts(of: entry.key, in: store) }
        }
        func change(_ keys: ArraySlice<Key>) throws -> Int {
            var batch = WriteBatch()
            for key in keys { add(&batch, key) }
            let results = try store.write(batch)
            try results.throwIfFailed()
            return results.count { $0.isSuccess }
        }
        try inBatches(note) { count += try $0[...].inParts(change) }
        others += lists
        while !others.isEmpty {
            _ = try others.suffix(1_000).inParts(change)
            others.removeLast(min(1_000, others.count))
        }
        return count
    }

    /// Removes every entry that is still selected then, with the parts and lists that belong to no other.
    /// - Returns: how many there were.
    func removeAll(_ progress: (Int) -> Void) throws -> Int {
        var count = 0
        var remains = ResponseRemains()
        try inBatches({ remains.note($0) }) { keys in
            count += try store.remove(.keys(Set(keys)) && selection)
            progress(count)
        }
        try remains.remove(from: store)
        return count
    }

    /// Keys in groups that fit into one commit.
    private func inBatches(_ note: (Attributes) throws -> Void = { _ in }, _ body: ([Key]) throws -> Void) throws {
        var keys: [Key] = []
        try forEach { entry in
            try note(entry)
            keys.append(entry.key)
            guard keys.count == 1_000 else { return }
            try body(keys)
            keys.removeAll(keepingCapacity: true)
        }
        if !keys.isEmpty { try body(keys) }
    }

    private func isListed(_ entry: Attributes) -> Bool {
        if isEverything { return true }
        return !StoredKeys.isList(entry) && !StoredKeys.isPart(entry) && !PackageStore.isOwn(entry)
    }
}
