import HTTPTypes
import LarderHTTP
import NIOCore

/// Takes an answer that comes later, or in pieces. On its event loop only.
protocol DeliverySink: AnyObject {
    /// Of the event loop.
    var worker: Worker { get }
    /// An interim (1xx) response. It is left out if the client has not taken the ones before: to wait for one client
    /// would hold up all that wait for the load, and to keep them would cost memory without a bound.
    func deliver(informational head: HTTPResponse)
    /// An answer of the server's own.
    func deliver(_ answer: OwnAnswer)
    /// A response of the service. Returns whether its content has to be brought piece by piece.
    func deliver(_ response: FetchResponse) -> Bool
    /// A piece of the content.
    func deliver(piece: [UInt8])
    /// The content is complete.
    func deliverEnd()
    /// The content will not be complete.
    func deliverFailure()
    /// Whether the client takes more at once.
    var takesMore: Bool { get }
    /// See ``SendQueue/unacknowledged(_:)``.
    var unacknowledgedBytes: Int { get }
}

/// What of an exchange cannot be done at once: work of the service, and content that arrives or comes from a disk. One
/// task, which a client that leaves cancels.
///
// SAFETY: everything that changes is touched on `eventLoop` only, which the methods assert that the sink calls;
// the task touches nothing but through `execute`.
final class Delivery: @unchecked Sendable {
    private let eventLoop: any EventLoop
    private let tasks: RunningTasks
    private let executor: LoopExecutor
    private weak var sink: (any DeliverySink)?
    private var task: Task<Void, Never>?
    /// What brings an answer without a task, and what is done where it does not.
    private var relayed: (any RelayedWork)?
    private var isStarting = false
    private var otherwise: ((BegunRequest) -> Void)?
    private var writer: CheckedContinuation<Void, any Error>?
    private var isOver = false
    /// What brings content from an origin; nil where none arrives.
    private var arriving: ClosedConnections.Source?
    /// There while a piece of it waits for room.
    private var stall: Stall?
    /// What arrives is in the store first, where it keeps the origin waiting for no client.
    private var isStored = false
    /// Held until the client is about to get the end of its answer. Its next request may come as soon as it has that,
    /// and must not be refused because this one still counts.
    var place: ClientTable.Place?

    init(_ eventLoop: any EventLoop, to sink: any DeliverySink) {
        self.eventLoop = eventLoop
        self.sink = sink
        tasks = sink.worker.core.tasks
        executor = sink.worker.executor
    }

    /// Lets a service answer.
    /// - Parameters:
    ///   - body: the content of the request.
    ///   - isHead: whether the answer is without content.
    func work(_ work: ServiceWork, body: RequestBody?, isHead: Bool, relaysInformational: Bool) {
        eventLoop.assertInEventLoop()
        let relay: ServiceWork.Interim = { head in await self.onLoop { $0.deliver(informational: head) } }
        task = tasks.start(on: executor) {
            let answer = await work.run(body, relaysInformational ? relay : nil)
            let body = await self.onLoop { self.deliver(answer, isHead: isHead, to: $0) } ?? nil
            if let body { await self.pump(body) }
        }
    }

    /// Lets an origin answer without a task, up to content that did not come with its head.
    /// - Parameter otherwise: called if the service has to answer.
    func relay(_ relay: ServiceRelay, otherwise: @escaping (BegunRequest) -> Void) {
        eventLoop.assertInEventLoop()
        relayed = relay.work
        self.otherwise = otherwise
        isStarting = true
        relay.work.start { [eventLoop] in
            eventLoop.execute($0)
        } _: { event in
            // Not within the call that reads requests: answers to earlier ones may not have left.
            if self.isStarting { return self.eventLoop.execute { self.take(event, relay) } }
            self.take(event, relay)
        }
        isStarting = false
    }

    private func take(_ event: RelayedEvent, _ relay: ServiceRelay) {
        switch event {
        case .informational(let head): sink?.deliver(informational: head)
        case .response(let response): deliver(ServiceAnswer(response))
        case .failure(let error): deliver(relay.failure(error))
        case .load(let load):
            let (otherwise, begun) = (otherwise, BegunRequest(load: load, place: place))
            endRelay()
            place = nil
            otherwise?(begun)
        }
    }

    private func deliver(_ answer: ServiceAnswer) {
        endRelay()
        guard !isOver, let sink else { return }
        // The connection may end as the head is written.
        if let body = deliver(answer, isHead: false, to: sink), !isOver { send(body) }
    }

    private func endRelay() {
        relayed = nil
        otherwise = nil
    }

    /// Returns content that has to be brought.
    private func deliver(_ answer: ServiceAnswer, isHead: Bool, to sink: any DeliverySink) -> ResponseBody? {
        if answer.isOriginFault { sink.worker.counters.upstreamErrors += 1 }
        switch answer.dated(at: sink.worker.core.time.wallSeconds()) {
        case .own(let own):
            place = nil
            sink.deliver(own)
            return nil
        case .response(let response):
            if answer.mayArrive {
                isStored = response.isStored
                if case .live = response.body.source, response.source == .network {
                    let holder = response.body.holder
                    let bytes = holder is RelayedLoad ? MemoryBudget.relayBytes : MemoryBudget.loadBytes
                    arriving = ClosedConnections.Source(bytes: bytes, since: .now(), holder: holder)
                }
                sink.worker.shedding?.watch()
            }
            // What is there asks nothing more of the origin, nor does an answer without content.
            if case .live = response.body.source, response.body.length != 0, !isHead {} else { place = nil }
            return sink.deliver(response) ? response.body : nil
        }
    }

    /// Brings content whose head has been written.
    func send(_ body: ResponseBody) {
        eventLoop.assertInEventLoop()
        task = tasks.start(on: executor) { await self.pump(body) }
    }

    /// About what the load behind it takes up, in bytes. Next to none where nothing arrives: an event stream that is
    /// silent.
    /// - Parameter isMoving: whether the client took something lately.
    func loadBytes(isMoving: Bool) -> Int {
        eventLoop.assertInEventLoop()
        return isMoving || isStored || sink?.takesMore == false ? arriving?.bytes ?? 0 : 0
    }

    /// What brings content from an origin; nil where none arrives.
    var source: ClosedConnections.Source? {
        eventLoop.assertInEventLoop()
        guard var source = arriving else { return nil }
        if let sink { stall?.look(sink.unacknowledgedBytes, at: .now()) }
        source.stalledSince = stall?.since
        return source
    }

    /// The client takes more.
    func resume() {
        eventLoop.assertInEventLoop()
        guard let writer, let sink, sink.takesMore else { return }
        self.writer = nil
        stall = nil
        writer.resume()
    }

    /// The rest is not wanted.
    func cancel() {
        eventLoop.assertInEventLoop()
        isOver = true
        sink = nil
        place = nil
        task?.cancel()
        relayed?.cancel()
        endRelay()
        writer?.resume(throwing: CancellationError())
        writer = nil
    }

    private func pump(_ body: ResponseBody) async {
        var iterator = body.makeAsyncIterator()
        var left = body.length
        do {
            while let piece = try await iterator.next() {
                if let rest = left {
                    left = rest - Int64(piece.count)
                    // The last byte of a declared length tells the client that it has all. By then the response has to
                    // be stored, which the end of the content tells us.
                    if left == 0, try await iterator.next() != nil { left = -1 }
                    guard left ?? 0 >= 0 else { throw WrongLength() }
                }
                try await write(piece, isLast: left == 0)
            }
            guard left ?? 0 == 0 else { throw WrongLength() }
            await onLoop { sink in
                self.place = nil
                sink.deliverEnd()
            }
        } catch {
            await onLoop { sink in
                self.place = nil
                if error is FetchError { sink.worker.counters.upstreamErrors += 1 }
                sink.deliverFailure()
            }
        }
    }

    /// More or less content than declared.
    struct WrongLength: Error {}

    private func write(_ piece: [UInt8], isLast: Bool) async throws {
        let takesMore =
            if eventLoop.inEventLoop {
                try deliver(piece, isLast: isLast)
            } else {
                try await withCheckedThrowingContinuation { continuation in
                    eventLoop.execute {
                        continuation.resume(with: Result { try self.deliver(piece, isLast: isLast) })
                    }
                }
            }
        if !takesMore { try await room() }
    }

    /// Returns whether the next piece may follow at once.
    private func deliver(_ piece: [UInt8], isLast: Bool) throws -> Bool {
        guard !isOver, let sink else { throw CancellationError() }
        if isLast { place = nil }
        sink.deliver(piece: piece)
        // The piece may have been the connection's end.
        return isOver || sink.takesMore
    }

    /// Waits until the client takes more.
    private func room() async throws {
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            execute {
                guard !self.isOver, let sink = self.sink else {
                    return continuation.resume(throwing: CancellationError())
                }
                if sink.takesMore { return continuation.resume() }
                self.writer = continuation
                if self.arriving != nil { self.stall = Stall(sink.unacknowledgedBytes, at: .now()) }
            }
        }
    }

    /// Runs something on the event loop: without a suspension, as its task runs there. Nil if the rest is not wanted.
    @discardableResult
    private func onLoop<R: Sendable>(_ body: @escaping @Sendable (any DeliverySink) -> R) async -> R? {
        if eventLoop.inEventLoop { return wanting(body) }
        return await withCheckedContinuation { continuation in
            eventLoop.execute { continuation.resume(returning: self.wanting(body)) }
        }
    }

    private func wanting<R>(_ body: (any DeliverySink) -> R) -> R? {
        guard !isOver, let sink else { return nil }
        return body(sink)
    }

    /// Runs something on the event loop: at once where that is this thread.
    private func execute(_ body: @escaping @Sendable () -> Void) {
        if eventLoop.inEventLoop { body() } else { eventLoop.execute(body) }
    }
}
