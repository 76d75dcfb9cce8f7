/// What a job is to do to entries in memory. Nothing is done before `carryOut`.
struct MemoryPlan {
    /// What is left of the changes of the job; empty: all of them, as there is nothing in memory.
    var left: [Change] = []
    /// The keys that the job puts to disk.
    var stored: Set<Key> = []
    /// The entries that the plan goes by.
    private(set) var seen: [Key: PendingPut] = [:]
    /// What takes their place; nil: they are removed.
    var changed: [Key: PendingPut?] = [:]
    /// Changed entries, whose memory is reserved.
    var reserved: [Key: PendingPut] = [:]
    /// Puts to disk, and the entries from which they take over what outlives an overwrite.
    var heirs: [(put: PendingPut, old: PendingPut)] = []
    /// Entries that single changes remove.
    var removedKeys: [Key] = []
    /// How many entries go for their content.
    var removedContent = 0
    /// Files of puts that are not made.
    var unneeded: [StagedFile] = []

    /// The keys of the entries that it goes by.
    var keys: Dictionary<Key, PendingPut>.Keys { seen.keys }

    /// True if nothing is left for the disk.
    var isOver: Bool { !left.isEmpty && left.allSatisfy { if case .over = $0 { true } else { false } } }

    /// The entry under a key, as earlier changes of the plan leave it.
    mutating func entry(_ key: Key, in table: MemoryTable) -> PendingPut? {
        if let known = changed[key] { return known }
        if let known = seen[key] { return known }
        let found = table.lookup(key, use: nil)
        if let found { seen[key] = found }
        return found
    }

    /// Does it, under the lock of the pending set; false, having done nothing, if entries came, went or changed since.
    func carryOut(_ job: PendingJob, in table: MemoryTable) -> Bool {
        if seen.isEmpty, table.isEmpty { return true }
        for (key, put) in seen where table.lookup(key, use: nil) !== put { return false }
        for change in job.changes {
            if let key = change.key, seen[key] == nil, table.lookup(key, use: nil) != nil { return false }
        }
        for (key, new) in changed {
            // Nothing in memory changes meanwhile, but entries may be evicted: then the change came first.
            guard let old = seen[key] else { continue }
            if let new {
                table.replace(old, by: new, isReserved: reserved[key] != nil)
            } else {
                table.remove(key) { $0 === old }
            }
        }
        for (put, old) in heirs { put.inherit(from: old) }
        if !left.isEmpty { job.changes = left }
        return true
    }
}
