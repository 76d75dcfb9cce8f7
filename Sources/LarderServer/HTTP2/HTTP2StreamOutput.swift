import HTTPTypes
import NIOCore
import NIOHTTP2
import NIOHTTPTypes
import NIOHTTPTypesHTTP2

/// What goes to the client on one stream: passes the parts of an answer to the stream's channel, and knows how far its
/// content has come. On the event loop only.
final class HTTP2StreamOutput {
    /// The stream's number.
    let id: Int
    private let worker: Worker
    private let flow: HTTP2Flow
    private let scheduler: HTTP2Scheduler
    /// The end of the stream's channel; nil before and after its life.
    private var context: ChannelHandlerContext?
    /// Heads that swift-nio-http2 has and has not put into frames yet.
    private var queuedHeads = 0
    /// Content that swift-nio-http2 has and has not put into frames yet, in bytes.
    private var queued: Int64 = 0
    /// Content that was handed over, in bytes.
    private var handedOver: Int64 = 0
    /// Of this, what the kernel has taken.
    private(set) var taken: Int64 = 0
    /// What the scheduler counts as in memory for this stream, and for its open files.
    private var held: Int64 = 0
    private var filesHeld: Int64 = 0
    /// The end of the answer has been put into a frame, after which the stream is closed.
    private(set) var isEndFramed = false

    init(_ id: Int, _ worker: Worker, _ flow: HTTP2Flow, _ scheduler: HTTP2Scheduler) {
        self.id = id
        self.worker = worker
        self.flow = flow
        self.scheduler = scheduler
    }

    func attach(_ context: ChannelHandlerContext) { self.context = context }
    func detach() { context = nil }

    /// Whether there is a channel to write to.
    var isAttached: Bool { context != nil }

    /// True if there is a channel to write to, and the client has taken most of what went to the connection.
    var isWritable: Bool { context?.channel.isWritable == true }

    /// What may be handed over now, in bytes.
    var room: Int64 { max(0, min(flow.window(of: id) - queued, flow.room)) }

    /// Whether the window of the stream itself is used up.
    var isOutOfWindow: Bool { flow.window(of: id) - queued <= 0 }

    // MARK: Writing

    /// Writes a head, interim or final.
    func write(_ head: HTTPResponse) {
        guard let context else { return }
        queuedHeads += 1
        context.write(part(.head(head)), promise: nil)
    }

    /// Hands content over.
    /// - Parameter body: runs when the kernel has taken it, or when it was dropped with its stream.
    func write(_ content: ArraySlice<UInt8>, _ body: @escaping (_ isTaken: Bool) -> Void) {
        guard let context else { return }
        let count = Int64(content.count)
        handedOver += count
        queued += count
        flow.handOver(count)
        context.write(part(.body(context.channel.allocator.buffer(bytes: content)))).assumeIsolated().whenComplete {
            let isTaken = Self.isSuccess($0)
            self.settle(count, isTaken: isTaken)
            body(isTaken)
        }
    }

    private func settle(_ count: Int64, isTaken: Bool) {
        if isTaken {
            taken += count
            worker.counters.bytesOut += UInt64(count)
        } else {
            handedOver -= count
        }
        flow.settle(count, isTaken: isTaken)
    }

    /// Ends the answer.
    /// - Parameter body: runs when the kernel has taken all of it, or when it will not.
    func end(_ body: @escaping (_ isTaken: Bool) -> Void) {
        context?.write(part(.end(nil))).assumeIsolated().whenComplete { body(Self.isSuccess($0)) }
    }

    private func part(_ part: HTTPResponsePart) -> NIOAny { NIOAny(part) }

    private static func isSuccess(_ result: Result<Void, any Error>) -> Bool {
        if case .success = result { true } else { false }
    }

    /// Makes what was written go out.
    func flush() {
        guard let context else { return }
        context.flush()
        // While the connection takes no more, swift-nio-http2 keeps heads, and puts off flushes until a read is over.
        // Content that is written before that would pass the head, which is an error of the stream. A flush of the
        // connection keeps the order.
        if queuedHeads > 0 { context.channel.parent?.flush() }
    }

    /// Resets the stream.
    func reset(_ code: NIOHTTP2.HTTP2ErrorCode) {
        context?.triggerUserOutboundEvent(NIOHTTP2FramePayloadToHTTPEvent.reset(code: code), promise: nil)
    }

    // MARK: Accounts

    /// swift-nio-http2 has put a head into a frame.
    func wroteHead() { queuedHeads -= 1 }

    /// swift-nio-http2 has put content into a frame.
    func wroteFrame(_ count: Int64, isLast: Bool) {
        queued -= count
        flow.unqueue(count)
        if isLast { isEndFramed = true }
    }

    /// The stream is closed: what was not put into a frame by now never will be.
    func dropQueued() {
        flow.unqueue(queued)
        queued = 0
    }

    /// Tells the scheduler how much is in memory for this stream.
    /// - Parameters:
    ///   - waiting: what has not been handed over yet, in bytes.
    ///   - files: what open files count as.
    func hold(waiting: Int64, files: Int64) {
        let (bytes, count) = (waiting + handedOver - taken - held, files - filesHeld)
        guard bytes != 0 || count != 0 else { return }
        held += bytes
        filesHeld += count
        scheduler.hold(bytes, files: count)
    }
}
