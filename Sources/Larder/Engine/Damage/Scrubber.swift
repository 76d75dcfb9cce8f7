import LMDB
import Locks

/// Looks after what an unclean end left, while the store is in use already: walks over the pages of the index; compares
/// body files that may have lost bytes to a power loss with their digests; removes files of `blobs/` that no record
/// names.
///
/// One thread, which ends when it is done, and of which one process at a time does the work on files. An open costs the
/// same however much there is to do. The next open for writing continues what a closing store leaves undone.
final class Scrubber: EnginePart, @unchecked Sendable {
    // SAFETY: `thread` is set at the end of `init` and used by `stop()` only, which is called once; `tally` and
    // `isIncomplete` are touched by that thread only. The rest is immutable or atomic; `monitor` guards no variable, it
    // wakes the thread. `stop()` joins the thread, which refers to this without counting, before this is released.
    let context: EngineContext
    private let damage: Damage
    /// Nil in a read-only engine, which only walks.
    private let changes: Changes?
    /// True if no other process had the store open when this one opened it.
    private let isAlone: Bool
    private let monitor = Monitor()
    private let isStopping = Atomic<Bool>(false)
    /// Uptime in nanoseconds until which a walk may continue although the store is being closed.
    private let deadline = Atomic<UInt64>(.max)
    private let hasWalked: Atomic<Bool>
    private var thread: WorkerThread?
    private var tally = Tally()
    /// True if a suspect file could not be compared: it stays suspect then.
    private var isIncomplete = false

    private struct Tally {
        var compared = 0
        var damaged = 0
        var orphans = 0
    }

    /// The store is being closed.
    private struct Stopped: Error {}

    /// What it takes to change the store.
    struct Changes: Sendable {
        let ledger: Ledger
        let transactions: Transactions
        let orphans: OrphanBlobs
    }

    /// Starts the thread.
    init(
        context: EngineContext, damage: Damage, changes: Changes?, isAlone: Bool, walksPages: Bool
    ) throws(LarderError) {
        self.context = context
        self.damage = damage
        self.changes = changes
        self.isAlone = isAlone
        hasWalked = Atomic(!walksPages)
        thread = try WorkerThread { [unowned self] in run() }
    }

    /// Nanoseconds that a store waits for a walk when it closes: enough for a million entries in memory. Without this,
    /// programs that run only for a moment would leave the walk to each other, and it would never end.
    private static let grace: UInt64 = 1_000_000_000

    /// Ends the thread. False if pages of the index have not been looked at, or were found damaged.
    func stop() -> Bool {
        deadline.store(uptime.uptime() &+ Self.grace, ordering: .sequentiallyConsistent)
        isStopping.store(true, ordering: .sequentiallyConsistent)
        monitor.locked { monitor.signal() }
        thread?.join()
        thread = nil
        return hasWalked.load(ordering: .sequentiallyConsistent)
    }

    private func run() {
        do {
            if !hasWalked.load(ordering: .relaxed) { try walkPages() }
            guard let changes, !damage.suspects.isEmpty,
                try ScrubClaim(changes.ledger).take(staging: files.staging, isAlone: isAlone)
            else { return }
            defer { ScrubClaim(changes.ledger).release() }
            try compareSuspects(changes.transactions)
            reach("scrub.compared")
            try removeOrphans(changes.orphans)
            if isIncomplete { return }
            try endSuspicion(changes.transactions)
            reach("scrub.ended")
            tell()
        } catch is Stopped {
            return
        } catch {
            // The next open for writing tries again; readers compare what they are handed meanwhile.
            logger(.recovery).warning(
                "the scan after an unclean shutdown did not finish", metadata: ["error": "\(error)"])
        }
    }

    private func tell() {
        let tally = tally
        logger(.recovery).info(
            "finished the scan after an unclean shutdown",
            metadata: [
                "compared": "\(tally.compared)", "damaged": "\(tally.damaged)", "orphans": "\(tally.orphans)",
            ])
        configuration.observer?(
            .scrubbed(compared: tally.compared, damaged: tally.damaged, orphans: tally.orphans))
    }

    // MARK: Pace

    private func pause() throws {
        if isStopping.load(ordering: .relaxed) { throw Stopped() }
    }

    /// Leaves the disk to others for as long as the work since `began` took, or until the store is closed.
    private func rest(since began: UInt64) throws {
        let seconds = Double(uptime.uptime() &- began) / 1e9
        monitor.locked {
            if !isStopping.load(ordering: .sequentiallyConsistent) { monitor.wait(seconds: min(seconds, 1)) }
        }
        try pause()
    }

    // MARK: Steps

    private func walkPages() throws {
        let trust = IndexTrust(files: files, configuration: configuration)
        do {
            try trust.walk(index.environment, .placed) { [unowned self] in
                guard isStopping.load(ordering: .relaxed) else { return }
                if uptime.uptime() > deadline.load(ordering: .relaxed) { throw Stopped() }
            }
        } catch is Stopped {
            throw Stopped()
        } catch {
            // A call that LMDB cannot carry out does not mean damage: the next open looks again.
            let failure = translate(error)
            if failure.code == .corruption {
                if let changes { WalkRecord(changes.ledger.words).noteDamage() }
                context.fail(failure)
            }
            throw failure
        }
        hasWalked.store(true, ordering: .sequentiallyConsistent)
        if let changes { WalkRecord(changes.ledger.words).end() }
    }

    /// Reads every suspect file once. Those that match get the epoch of now, and are suspect no longer, for other
    /// processes either.
    private func compareSuspects(_ transactions: Transactions) throws {
        var next: UInt64? = 0
        while let start = next {
            try pause()
            let began = uptime.uptime()
            let files = try suspects(from: start, &next)
            var sound: [(id: UInt64, head: BlobRecord)] = []
            for (id, head) in files where try compare(id, head) { sound.append((id, head)) }
            try clear(sound, transactions)
            if !files.isEmpty { try rest(since: began) }
        }
    }

    /// The suspect files among some thousand blobs, on a short snapshot.
    private func suspects(from start: UInt64, _ next: inout UInt64?) throws -> [(id: UInt64, head: BlobRecord)] {
        return try readLong { transaction in
            try transaction.withCursor(index.blobs) { cursor in
                var found: [(id: UInt64, head: BlobRecord)] = []
                var bytes: UInt64 = 0
                var pair = try cursor.seek(start)
                for _ in 0..<4096 where bytes < 16 << 20 {
                    guard let (key, value) = pair else { break }
                    if let head = BlobRecord(value), head.location == .file, !head.isDamaged,
                        damage.suspects.contains(head.epoch)
                    {
                        found.append((key.field(0), head))
                        bytes &+= head.storedLength
                    }
                    pair = try cursor.next()
                }
                next = pair.map { $0.0.field(0) }
                return found
            }
        }
    }

    /// True if the file has the bytes that its name says; one that has not is quarantined.
    private func compare(_ id: UInt64, _ head: BlobRecord) throws -> Bool {
        if head.encoding == .partial {
            try damage.drop(id, head, "the machine went down before its bytes were synced")
            return false
        }
        if damage.isVerified(id) { return true }
        guard let file = try open(id, head) else { return false }
        tally.compared += 1
        if try files.matches(file, head, pause: pause) {
            damage.noteVerified(id)
            return true
        }
        tally.damaged += 1
        try damage.quarantine(id, head, "the bytes of the file do not match the digest")
        return false
    }

    /// The file of a suspect body; nil if the body is no longer part of the store, or if its file is lost, which is
    /// then noted.
    private func open(_ id: UInt64, _ head: BlobRecord) throws -> OwnedDescriptor? {
        for _ in 0..<3 {
            if let file = try files.openBlob(head) { return file }
            // Puts it back if it is in `trash/` for a removal that was not made.
            try damage.reportVanished(id, head)
            let current = try read { try index.blob(id, $0) }
            guard current?.isSameFile(as: head) == true else { return nil }
        }
        isIncomplete = true
        return nil
    }

    private func clear(_ sound: [(id: UInt64, head: BlobRecord)], _ transactions: Transactions) throws {
        if sound.isEmpty { return }
        try transactions.housekeep { mutation in
            for (id, head) in sound {
                guard let current = try index.blob(id, mutation.reading),
                    current.isSameFile(as: head)
                else { continue }
                var cleared = current
                // Not an old epoch: where the machine does not tell its runs apart, the bytes may have come from
                // memory.
                cleared.epoch = mutation.state.epoch
                try mutation.blobs.rewrite(id, current, cleared)
                try mutation.blobs.noteUnpublished(cleared, id)
            }
        }
        transactions.noteUnsyncedFiles()
    }

    private func removeOrphans(_ orphans: OrphanBlobs) throws {
        for directory in try files.shards() {
            try pause()
            tally.orphans += try orphans.remove(in: directory)
        }
    }

    /// Every suspect file was compared: a new start of the machine has only those to suspect that are written from now
    /// on.
    private func endSuspicion(_ transactions: Transactions) throws {
        let suspects = damage.suspects
        try transactions.housekeep { mutation in
            guard mutation.state.suspects == suspects else { return }
            mutation.state.suspectFrom = 0
            mutation.state.suspectTo = 0
        }
    }
}
