extension PendingSet {
    /// Hits on an entry of the batch that is being written: its stamp is not known yet, so they go by key.
    struct KeyTouch {
        var hits: UInt32
        var lastUse: UInt64
    }

    struct Batch {
        var generation: UInt64
        /// Puts and removals, by their keys: what readers see.
        var changes: [Key: Change] = [:]
        /// Applied after those, in this order.
        var jobs: [PendingJob] = []
        private var jobChanges = 0
        private var patientJobs = 0
        /// True if there is nothing in it that a caller waits for, or may soon read elsewhere.
        var isPatient: Bool { changes.isEmpty && patientJobs == jobs.count && !isForced }
        var touches: [Key: KeyTouch] = [:]
        var memory = 0
        var isDurable = false
        /// Committed even without changes, for the touches that a flush has to write.
        var isForced = false
        /// False: there is nothing to commit but touches, which wait for a batch or for the committer to be idle.
        var isWanted: Bool { !changes.isEmpty || !jobs.isEmpty || isForced }
        var isEmpty: Bool { touches.isEmpty && !isWanted }

        init(generation: UInt64) { self.generation = generation }

        /// Changes that it makes to the index.
        var count: Int { changes.count + jobChanges }
        /// Changes that a caller waits for, or may.
        var callers: Int { changes.count + jobs.count }

        mutating func append(_ job: PendingJob, isPatient: Bool = false) {
            jobs.append(job)
            if isPatient { patientJobs += 1 }
            jobChanges += job.changes.count
            memory += job.memory
            isDurable = isDurable || job.isDurable
            guard let keys = job.keys else { return claimsAll = true }
            if keys.count <= 16 { claimed.formUnion(keys) } else { claimedByLarge.append(keys) }
        }

        /// The keys of its jobs: those of small ones together, so that a key is not looked up in each of hundreds, and
        /// the others as they are, as copying thousands would make readers wait.
        private var claimed: Set<Key> = []
        private var claimedByLarge: [Set<Key>] = []
        private var claimsAll = false

        /// True if a job of the batch has to see the key as it is now: what is put under it later belongs into a later
        /// batch.
        func claims(_ key: Key) -> Bool {
            claimsAll || claimed.contains(key) || claimedByLarge.contains { $0.contains(key) }
        }

        /// True if it may change something under a key with these first bytes.
        func mayHave(prefix: Key) -> Bool {
            claimsAll || changes.keys.contains { $0.hasPrefix(prefix) } || claimed.contains { $0.hasPrefix(prefix) }
                || claimedByLarge.contains { $0.contains { $0.hasPrefix(prefix) } }
        }
    }

    /// What the committer should do next.
    struct Work {
        var batch: Batch
        var isClosing: Bool
    }

    enum Lookup {
        case put(PendingPut)
        case removed
    }

    /// What happened to a job.
    enum Admission {
        /// It is in the batch of this generation; 0: no part of it is left for the disk.
        case added(UInt64)
        /// The batch is full.
        case full
        /// Another job may change the same entries in memory: to be tried again when its batch is over.
        case claimed(UInt64)
        /// Entries in memory are others by now.
        case stale
    }

    /// What happened to a put or removal.
    struct Added {
        let generation: UInt64
        /// The put it took the place of, whose staged file is no longer needed.
        let replaced: PendingPut?
    }
}
