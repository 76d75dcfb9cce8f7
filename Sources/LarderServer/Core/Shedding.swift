import NIOCore
import Locks

/// Closes connections while more memory is held than may be: see ``MemoryBudget``.
///
/// It compares the connections of all event loops, because a client has connections on each of them. Safe to use from
/// any thread.
final class Shedding: Sendable {
    /// A connection that holds memory.
    struct Holder: Sendable {
        let id: ObjectIdentifier
        /// Nil for a connection that counts by itself.
        let client: ClientAddress?
        /// See ``SupervisedConnection/footprint(progress:)``.
        let bytes: Int
        /// Bytes that the client took or sent since the look before last; none if it is stalled.
        let progress: Int64
        /// When content began to come for it.
        let since: NIODeadline
    }

    /// Connections that hold less are never closed for it, in bytes.
    static let leastBytes = 32 << 10
    /// More than passes from one acknowledgement of a client that reads slowly to the next.
    private static let stallTime = TimeAmount.milliseconds(250)
    /// Clients that took as much lately are alike, in bytes.
    private static let enoughProgress: Int64 = 64 << 10
    /// The least time between two rounds, so that every second look at most closes something.
    private static let pause = TimeAmount.milliseconds(10)

    /// At least one.
    private let workers: [Worker]
    private let memory: MemoryBudget
    private let isUnderWay = Atomic(false)
    private let isWatching = Atomic(false)
    private let isOver = Atomic(false)
    private let closed = Mutex(ClosedConnections())

    init(_ workers: [Worker], _ memory: MemoryBudget) {
        self.workers = workers
        self.memory = memory
    }

    /// Bytes for which nothing has been closed yet.
    private var excess: Int {
        let excess = memory.excess
        return excess > 0 ? excess - closed.withLock { $0.bytes(at: .now()) } : 0
    }

    /// Looks fifty times a second from now on, for as long as a good part of the memory is in use. Call it when content
    /// begins to come: many responses together are faster than the looks once a second.
    func watch() {
        if !isWatching.exchange(true, ordering: .relaxed) { look() }
    }

    private func look() {
        workers[0].eventLoop.scheduleTask(in: .milliseconds(20)) {
            if self.isOver.load(ordering: .relaxed) { return }
            self.run()
            if self.memory.held > self.memory.limit / 8 { return self.look() }
            self.isWatching.store(false, ordering: .relaxed)
        }
    }

    /// Does nothing from now on: another server may have the event loops.
    func stop() { isOver.store(true, ordering: .relaxed) }

    /// Closes as many connections as it takes. Does nothing while an earlier call is still at it.
    @discardableResult
    func run() -> EventLoopFuture<Void> {
        let eventLoop = workers[0].eventLoop
        guard !isOver.load(ordering: .relaxed), excess > 0, !isUnderWay.exchange(true, ordering: .relaxed) else {
            return eventLoop.makeSucceededVoidFuture()
        }
        let lists = workers.map { worker in worker.eventLoop.submit { worker.holders } }
        return EventLoopFuture.whenAllSucceed(lists, on: eventLoop).flatMap { lists in
            let closed = Self.choose(lists.flatMap { $0 }, excess: self.excess)
            let chosen = Set(closed.map(\.id))
            if !closed.isEmpty { self.workers[0].core.tellOfShedding() }
            let closings = zip(self.workers, lists).map { worker, holders in
                worker.eventLoop.submit {
                    let sources = worker.shed(holders.map(\.id).filter(chosen.contains))
                    self.closed.withLock { $0.add(sources, at: .now()) }
                }
            }
            return EventLoopFuture.andAllComplete(closings, on: eventLoop)
        }.always { _ in
            eventLoop.scheduleTask(in: Self.pause) { self.isUnderWay.store(false, ordering: .relaxed) }
        }
    }

    /// Whether a client has stopped taking what comes for it. Its progress shows that only after two looks.
    static func areStalled(_ sources: [ClosedConnections.Source], at now: NIODeadline) -> Bool {
        !sources.isEmpty
            && sources.allSatisfy { source in source.stalledSince.map { now - $0 >= stallTime } ?? false }
    }

    /// The connections to close, so that at least `excess` bytes are let go of.
    ///
    /// First come those of the clients that hold the most with all their connections, by powers of two. Of clients
    /// alike, those come first that took the least lately, and of these the ones that hold the most. Of those that took
    /// much, the latest come first: the system of a client that reads nothing takes much at the beginning, too. A
    /// connection that counts by itself, and takes something, comes last.
    static func choose(_ holders: [Holder], excess: Int) -> [Holder] {
        var sums: [ClientAddress: Int] = [:]
        for holder in holders { if let client = holder.client { sums[client, default: 0] += holder.bytes } }
        func rank(_ holder: Holder) -> (Int, Int64, Int64, Int) {
            let sum = holder.client.flatMap { sums[$0] } ?? (holder.progress > 0 ? 0 : holder.bytes)
            let progress = min(max(0, holder.progress), enoughProgress)
            let age = progress < enoughProgress ? 0 : -Int64(clamping: holder.since.uptimeNanoseconds)
            return (sum.leadingZeroBitCount, progress, age, -holder.bytes)
        }
        var due = excess
        return holders.sorted { rank($0) < rank($1) }.prefix { holder in
            defer { due -= holder.bytes }
            return due > 0
        }
    }
}
