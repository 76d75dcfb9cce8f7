import Larder
import Locks

/// Blobs that builds count on, and so must not be displaced before they have used them.
///
/// Each has a timed lease by its content, which the budget counts. It is taken for half as long again as what is
/// promised, and again when no more than that is left: so a blob that is asked for all the time costs a write every
/// half of the time that is promised, not with every request.
package final class Promises: Sendable {
    private struct State {
        /// Until when the leases hold, as far as this process has taken them.
        var ends: [Digest: ContinuousClock.Instant] = [:]
        /// Those whose leases are written soon.
        var waiting: Set<Digest> = []
        var isWriting = false
        /// Whether what is stored might be displaced before its lease is written; yes until known otherwise.
        var isShortOfRoom = true
        var looked: ContinuousClock.Instant?
    }

    /// Digests that are remembered. One that is forgotten is leased again.
    private static let limit = 1 << 18

    private let store: Store
    /// What is promised.
    let time: Duration
    private var leaseTime: Duration { time + time / 2 }
    private let state = Mutex(State())

    init(_ store: Store, time: Duration) {
        self.store = store
        self.time = min(time, WriteBatch.longestLease / 2)
    }

    /// Keeps blobs that are there or may come. Returns when the leases are written.
    /// - Returns: whether any had to be.
    @discardableResult
    func promise(_ digests: [Digest]) async throws -> Bool {
        let due = due(digests)
        try await write(due)
        return !due.isEmpty
    }

    /// Leases blobs, promised before or not.
    /// - Parameter areNew: they were just stored under their digests.
    func write(_ due: [Digest], areNew: Bool = false) async throws {
        guard time > .zero else { return }
        for start in stride(from: 0, to: due.count, by: Self.batch) {
            let part = Array(due[start..<min(due.count, start + Self.batch)])
            var batch = WriteBatch()
            batch.findsStrays = false
            lease(part, &batch)
            for digest in part where !areNew {
                // Content that has another name only would go with that name.
                batch.put(contentOf: digest, for: Key(digest), unlessPresent: true)
                // What is asked for by its result alone is in use, too.
                batch.touch(Key(digest))
            }
            try await store.write(batch).throwIfFailed()
            note(part)
        }
    }

    /// Whether a blob may find no room, or displacement come to it, within the second that follows. Other programs may
    /// fill the disk, whatever the budget says, and a store whose commits fail takes nothing.
    func isShortOfRoom() async -> Bool {
        let (known, isDue) = state.withLock { state in
            let now = ContinuousClock.now
            let isDue = state.looked.map { now - $0 >= .seconds(1) } ?? true
            if isDue { state.looked = now }
            return (state.isShortOfRoom, isDue)
        }
        guard isDue, let statistics = try? await store.performShort({ [store] in try store.statistics() }) else {
            return known
        }
        let budget = statistics.budget.bytes
        let room = budget == .unlimited ? .max : budget.bytes - statistics.allocatedBytes.bytes
        let free = (try? store.freeDiskBytes()) ?? 0
        let isShort = min(room, free) < Self.room || !statistics.failures.isEmpty
        state.withLock { $0.isShortOfRoom = isShort }
        return isShort
    }

    /// More than is stored in a second.
    private static let room: Int64 = 1 << 30

    /// Keeps a blob that was just stored, and does not wait for it. Leases are written together.
    package func promiseSoon(_ digest: Digest) {
        guard time > .zero else { return }
        let begins = state.withLock { state in
            state.waiting.insert(digest)
            defer { state.isWriting = true }
            return !state.isWriting
        }
        if begins { Task { await writeWaiting() } }
    }

    private func writeWaiting() async {
        while true {
            try? await Task.sleep(for: Self.delay)
            let digests = state.withLock { state in
                defer { state.waiting = [] }
                if state.waiting.isEmpty { state.isWriting = false }
                return Array(state.waiting)
            }
            if digests.isEmpty { return }
            // Without room for a lease, and when the store is closed, they are as all others are.
            _ = try? await write(digests, areNew: true)
        }
    }

    /// How long a lease waits for others.
    private static let delay = Duration.milliseconds(200)
    /// Leases in one commit. Each takes three operations of a batch.
    private static let batch = 4_096

    /// Those whose lease has to be written again.
    func due(_ digests: [Digest]) -> [Digest] {
        guard time > .zero else { return [] }
        let now = ContinuousClock.now
        return state.withLock { state in digests.filter { state.ends[$0].map { $0 - now < time } ?? true } }
    }

    /// Adds their leases to what is written.
    func lease(_ digests: [Digest], _ batch: inout WriteBatch) {
        if time > .zero { for digest in digests { batch.lease(digest: digest, for: leaseTime) } }
    }

    /// Remembers leases that were written now.
    func note(_ digests: [Digest]) {
        guard time > .zero else { return }
        let now = ContinuousClock.now
        state.withLock { state in
            if state.ends.count + digests.count > Self.limit {
                state.ends = state.ends.filter { $0.value - now >= time }
                if state.ends.count + digests.count > Self.limit { state.ends.removeAll() }
            }
            for digest in digests { state.ends[digest] = now + leaseTime }
        }
    }

    /// Whether a blob need not be promised yet again.
    func isPromised(_ digest: Digest) -> Bool {
        guard time > .zero else { return true }
        return state.withLock { $0.ends[digest].map { $0 - .now >= time } ?? false }
    }
}
