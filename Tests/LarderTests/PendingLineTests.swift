import Locks
import TestSupport
import Testing

@testable import Larder

/// Callers that wait for room in a batch while a job is in line.
@Suite struct PendingLineTests {
    private func removal(_ key: String) -> PendingRemoval {
        PendingRemoval(key: Key(key), owner: 1, version: nil, isDurable: false, uptime: 0)
    }

    /// The job leaves the line without adding to the batch, which stays empty: nothing else would wake the removal.
    @Test func removalGoesAheadWhenTheJobBeforeItLeaves() throws {
        for _ in 0..<50 {
            let pending = PendingSet(memoryLimit: 1 << 20, countLimit: 1, delay: 0) { 0 }
            _ = try pending.add(removal("full"))
            let job = Threads(1) { _ in
                _ = try pending.add(PendingJob([], isDurable: false), alongside: { false })
            }
            blockWhile { pending.jobsInLine == 0 }
            let other = Threads(1) { _ in _ = try pending.add(removal("other")) }
            var isTaken = false
            blockWhile {
                isTaken = pending.next(idle: 0, isShared: false).batch.changes["other"] != nil || isTaken
                return !isTaken || pending.jobsInLine > 0
            }
            try job.join()
            try other.join()
            pending.close()
        }
    }

    /// Others see a put when it is committed. Without them this would wait for an hour.
    @Test(.timeLimit(.minutes(10))) func aPutDoesNotWaitLongWhereOthersHaveTheStore() throws {
        let now = Atomic<UInt64>(0)
        let pending = PendingSet(memoryLimit: 1 << 20, countLimit: 10, delay: 3600 * 1_000_000_000) {
            now.load(ordering: .relaxed)
        }
        _ = try pending.add(removal("k"))
        now.store(10_000_000, ordering: .relaxed)
        #expect(pending.next(idle: 0, isShared: true).batch.changes.count == 1)
        pending.close()
    }

    /// Jobs of which each fills a batch come without end, so that the line is never empty.
    @Test func putsAreNotLeftBehindByJobs() throws {
        let pending = PendingSet(memoryLimit: 1 << 20, countLimit: 2, delay: 0) { 0 }
        _ = try pending.add(removal("full"))
        _ = try pending.add(removal("full, too"))
        let jobs = Threads(4) { _ in
            while true {
                let changes = [Change.over(.absent), Change.over(.absent)]
                do { _ = try pending.add(PendingJob(changes, isDurable: false)) } catch { return }
            }
        }
        blockWhile { pending.jobsInLine < 4 }
        let hasPut = Atomic<Bool>(false)
        let put = Threads(1) { _ in
            _ = try? pending.add(removal("put"))
            hasPut.store(true, ordering: .releasing)
        }
        let isAmongJobs = takeBatches(of: pending, until: hasPut)
        try put.join()
        try jobs.join()
        #expect(isAmongJobs)
    }

    /// Takes batches as the committer does, 2,000 at most, and closes the set.
    /// - Returns: whether it came to that before.
    private func takeBatches(of pending: PendingSet, until isDone: borrowing Atomic<Bool>) -> Bool {
        for _ in 0..<2000 {
            if isDone.load(ordering: .acquiring) { break }
            blockWhile { !pending.isDue }
            _ = pending.next(idle: 0, isShared: false)
        }
        defer { pending.close() }
        return isDone.load(ordering: .acquiring)
    }

    /// Puts that together need more than a batch come without end, so that each batch leaves some behind.
    @Test func jobsAreNotLeftBehindByPuts() throws {
        let pending = PendingSet(memoryLimit: 1 << 20, countLimit: 2, delay: 0) { 0 }
        let puts = Threads(6) { number in
            for round in 0... {
                do { _ = try pending.add(removal("\(number), \(round)")) } catch { return }
            }
        }
        blockWhile { !pending.isDue }
        let isAdded = Atomic<Bool>(false)
        let job = Threads(1) { _ in
            _ = try? pending.add(PendingJob([Change.over(.absent)], isDurable: false))
            isAdded.store(true, ordering: .releasing)
        }
        let isAmongPuts = takeBatches(of: pending, until: isAdded)
        try job.join()
        try puts.join()
        #expect(isAmongPuts)
    }
}
