import NIOCore
import Synchronization

/// Closes connections while more memory is held than may be: see ``MemoryBudget``.
///
/// It compares the connections of all event loops, because a client has connections on each of them. Safe to use from any
/// thread.
final class Shedding: Sendable {
    /// A connection that holds memory.
    struct Holder: Sendable {
        let id: ObjectIdentifier
        /// Nil for a client without an IP address.
        let client: ClientAddress?
        /// See ``SupervisedConnection/footprint``.
        let bytes: Int
        /// Bytes that the client took since the last look but one.
        let progress: Int64
    }

    /// At least one.
    private let workers: [Worker]
    private let memory: MemoryBudget
    private let isUnderWay = Atomic(false)
    private let isWatching = Atomic(false)

    init(_ workers: [Worker], _ memory: MemoryBudget) {
        self.workers = workers
        self.memory = memory
    }

    /// Looks fifty times a second from now on, for as long as a good part of the memory is in use. Call it when a load
    /// begins: what many of them read ahead comes faster than the looks once a second.
    func watch() {
        if !isWatching.exchange(true, ordering: .relaxed) { look() }
    }

    private func look() {
        workers[0].eventLoop.scheduleTask(in: .milliseconds(20)) {
            self.run()
            if self.memory.held > self.memory.limit / 8 { return self.look() }
            self.isWatching.store(false, ordering: .relaxed)
        }
    }

    /// Closes as many connections as it takes. Does nothing while an earlier call is still at it.
    @discardableResult
    func run() -> EventLoopFuture<Void> {
        let eventLoop = workers[0].eventLoop
        guard memory.excess > 0, !isUnderWay.exchange(true, ordering: .relaxed) else {
            return eventLoop.makeSucceededVoidFuture()
        }
        let lists = workers.map { worker in worker.eventLoop.submit { worker.holders } }
        return EventLoopFuture.whenAllSucceed(lists, on: eventLoop).flatMap { lists in
            let chosen = Set(Self.choose(lists.flatMap { $0 }, excess: self.memory.excess).map(\.id))
            let closings = zip(self.workers, lists).map { worker, holders in
                worker.eventLoop.submit { worker.shed(holders.map(\.id).filter(chosen.contains)) }
            }
            return EventLoopFuture.andAllComplete(closings, on: eventLoop)
        }.always { _ in self.isUnderWay.store(false, ordering: .relaxed) }
    }

    /// The connections to close, so that at least `excess` bytes are let go of.
    ///
    /// Those whose clients took nothing since the last look come first. Among them, and among the others, those of the client
    /// that holds most with all its connections; of one client, or of clients that hold the same, those that took least.
    static func choose(_ holders: [Holder], excess: Int) -> [Holder] {
        let sums = Dictionary(holders.map { ($0.client, $0.bytes) }, uniquingKeysWith: +)
        func rank(_ holder: Holder) -> (Int, Int, Int64, Int) {
            (holder.progress > 0 ? 1 : 0, -sums[holder.client, default: 0], holder.progress, -holder.bytes)
        }
        var due = excess
        return holders.sorted { rank($0) < rank($1) }.prefix { holder in
            defer { due -= holder.bytes }
            return due > 0
        }
    }
}
