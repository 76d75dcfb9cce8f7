import LMDB
import Synchronization

/// Looks after what an unclean end left, while the store is in use already: walks over the pages of the index; compares
/// body files that may have lost bytes to a power loss with their digests; removes files of `blobs/` that no record
/// names.
///
/// One thread, which ends when it is done, and of which one process at a time does the work on files. An open costs the
/// same however much there is to do. The next open for writing continues what a closing store leaves undone.
final class Scrubber: @unchecked Sendable {
    // SAFETY: `engine` outlives the thread, as `stop()` joins it first; `thread` is set in `init` and used by `stop()`
    // only; `tally` and `isIncomplete` are the thread's own. The rest is atomic, or guarded by `monitor`.
    private unowned let engine: Engine
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

    /// Starts the thread.
    init(engine: Engine, walksPages: Bool) throws(LarderError) {
        self.engine = engine
        hasWalked = Atomic(!walksPages)
        thread = try WorkerThread { [unowned self] in run() }
    }

    /// Nanoseconds that a store waits for a walk when it closes: enough for a million entries in memory. Without this,
    /// programs that run only for a moment would leave the walk to each other, and it would never end.
    private static let grace: UInt64 = 1_000_000_000

    /// Ends the thread. False if pages of the index have not been looked at, or were found damaged.
    func stop() -> Bool {
        deadline.store(engine.uptime.uptime() &+ Self.grace, ordering: .sequentiallyConsistent)
        isStopping.store(true, ordering: .sequentiallyConsistent)
        monitor.locked { monitor.signal() }
        thread?.join()
        thread = nil
        return hasWalked.load(ordering: .sequentiallyConsistent)
    }

    private func run() {
        do {
            if !hasWalked.load(ordering: .relaxed) { try walkPages() }
            guard let writing = engine.writing, !engine.suspects.isEmpty,
                try writing.ledger.claimScrub(staging: engine.files.staging, isAlone: engine.presence.isAlone)
            else { return }
            defer { writing.ledger.releaseScrub() }
            try compareSuspects()
            engine.reach("scrub.compared")
            try removeOrphans()
            if isIncomplete { return }
            try endSuspicion()
            engine.reach("scrub.ended")
            tell()
        } catch is Stopped {
            return
        } catch {
            // The next open for writing tries again; readers compare what they are handed meanwhile.
            engine.logger.warning("not everything was looked at after an unclean end", metadata: ["error": "\(error)"])
        }
    }

    private func tell() {
        let tally = tally
        engine.logger.info(
            "looked after an unclean end of the machine",
            metadata: [
                "compared": "\(tally.compared)", "damaged": "\(tally.damaged)", "orphans": "\(tally.orphans)",
            ])
        engine.configuration.observer?(
            .scrubbed(compared: tally.compared, damaged: tally.damaged, orphans: tally.orphans))
    }

    // MARK: Pace

    private func pause() throws {
        if isStopping.load(ordering: .relaxed) { throw Stopped() }
    }

    /// Leaves the disk to others for as long as the work since `began` took, or until the store is closed.
    private func rest(since began: UInt64) throws {
        let seconds = Double(engine.uptime.uptime() &- began) / 1e9
        monitor.locked {
            if !isStopping.load(ordering: .sequentiallyConsistent) { monitor.wait(seconds: min(seconds, 1)) }
        }
        try pause()
    }

    // MARK: Steps

    private func walkPages() throws {
        let trust = IndexTrust(files: engine.files, configuration: engine.configuration)
        do {
            try trust.walk(engine.index.environment, .placed) { [unowned self] in
                guard isStopping.load(ordering: .relaxed) else { return }
                if engine.uptime.uptime() > deadline.load(ordering: .relaxed) { throw Stopped() }
            }
        } catch is Stopped {
            throw Stopped()
        } catch {
            // A call that LMDB cannot carry out does not mean damage: the next open looks again.
            let failure = engine.translate(error)
            if failure.code == .corruption { engine.fail(failure) }
            throw failure
        }
        hasWalked.store(true, ordering: .sequentiallyConsistent)
        engine.writing?.ledger.pendingWalk = 0
    }

    /// Reads every suspect file once. Those that match get the epoch of now, and are suspect no longer, for other
    /// processes either.
    private func compareSuspects() throws {
        var next: UInt64? = 0
        while let start = next {
            try pause()
            let began = engine.uptime.uptime()
            let files = try suspects(from: start, &next)
            var sound: [(id: UInt64, head: BlobRecord)] = []
            for (id, head) in files where try compare(id, head) { sound.append((id, head)) }
            try clear(sound)
            if !files.isEmpty { try rest(since: began) }
        }
    }

    /// The suspect files among some thousand blobs, on a short snapshot.
    private func suspects(from start: UInt64, _ next: inout UInt64?) throws -> [(id: UInt64, head: BlobRecord)] {
        let engine = engine
        return try engine.readLong { transaction in
            try transaction.withCursor(engine.index.blobs) { cursor in
                var found: [(id: UInt64, head: BlobRecord)] = []
                var bytes: UInt64 = 0
                var pair = try cursor.seek(start)
                for _ in 0..<4096 where bytes < 16 << 20 {
                    guard let (key, value) = pair else { break }
                    if let head = BlobRecord(value), head.location == .file, !head.isDamaged,
                        engine.suspects.contains(head.epoch)
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
        if engine.verified.withLock({ $0.contains(id) }) { return true }
        guard let file = try open(id, head) else { return false }
        tally.compared += 1
        if try Engine.digest(of: file, length: head.storedLength, pause: pause) == head.digest {
            engine.verified.withLock { _ = $0.insert(id) }
            return true
        }
        tally.damaged += 1
        try engine.quarantine(id, head, "the bytes of the file do not match the digest")
        return false
    }

    /// The file of a suspect body; nil if the body is no longer part of the store, or if its file is lost, which is
    /// then noted.
    private func open(_ id: UInt64, _ head: BlobRecord) throws -> OwnedDescriptor? {
        for _ in 0..<3 {
            if let file = try engine.files.openBlob(head) { return file }
            // Puts it back if it is in `trash/` for a removal that was not made.
            try engine.reportVanished(id, head)
            let index = engine.index
            let current = try engine.read { try $0.get(index.blobs, id).flatMap(BlobRecord.init) }
            guard current?.isSameFile(as: head) == true else { return nil }
        }
        isIncomplete = true
        return nil
    }

    private func clear(_ sound: [(id: UInt64, head: BlobRecord)]) throws {
        if sound.isEmpty { return }
        let engine = engine
        try engine.mutate(.housekeeping) { mutation in
            for (id, head) in sound {
                guard let current = try mutation.reading.get(engine.index.blobs, id).flatMap(BlobRecord.init),
                    current.isSameFile(as: head)
                else { continue }
                var cleared = current
                // Not an old epoch: where the machine does not tell its runs apart, the bytes may have come from
                // memory.
                cleared.epoch = mutation.state.epoch
                try mutation.rewrite(id, current, cleared)
                try mutation.noteUnpublished(cleared, id)
            }
        }
        engine.hasUnsyncedFiles.store(true, ordering: .releasing)
    }

    private func removeOrphans() throws {
        for directory in try engine.files.shards() {
            try pause()
            tally.orphans += try Collector.removeOrphans(in: directory, engine)
        }
    }

    /// Every suspect file was compared: a new start of the machine has only those to suspect that are written from now
    /// on.
    private func endSuspicion() throws {
        let suspects = engine.suspects
        try engine.mutate(.housekeeping) { mutation in
            guard mutation.state.suspects == suspects else { return }
            mutation.state.suspectFrom = 0
            mutation.state.suspectTo = 0
        }
    }
}
