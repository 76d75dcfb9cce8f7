import HTTPTypes
import LarderHTTP
import NIOCore
import NIOHTTP2
import NIOHTTPTypes
import NIOHTTPTypesHTTP2

/// One request on an HTTP/2 connection. What is decided is the same as for HTTP/1.1.
final class HTTP2StreamHandler: ChannelDuplexHandler {
    typealias InboundIn = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    let worker: Worker
    let connection: HTTP2Connection
    private(set) var id = 0
    private(set) var context: ChannelHandlerContext?
    /// Until the request is counted and logged.
    var record: RequestRecord?
    var method = HTTPRequest.Method.get
    var delivery: Delivery?

    // The request.

    /// A head of which is not known yet whether content follows.
    var openHead: HTTPRequest?
    /// A request that is answered when the connection has memory.
    var waitingRequest: HTTPRequest?
    var inlet: BodyInlet?
    var hasPendingRead = false
    var hasContent = false
    /// Content that came before it was known what is done about the request.
    var early: [[UInt8]] = []
    var isRequestComplete = false
    var owesContinue = false
    var received: Int64 = 0
    /// Content that the load has not asked for more after, in bytes.
    var ahead: Int64 = 0
    var inboundWatch = RateWatch()

    // The answer.

    /// The head of the final answer is written.
    var hasBegun = false
    /// The end of the answer is written.
    var hasEnded = false
    /// The end of the answer has been put into a frame, after which the stream is closed.
    private var isEndFramed = false
    var content = HTTP2Content()
    /// What was declared and is not written yet; nil where the length is not known.
    var left: Int64?
    /// Content that swift-nio-http2 has and has not put into frames yet, in bytes.
    private(set) var queued: Int64 = 0
    /// Content that has been handed over, and what of it the kernel has taken, in bytes.
    var handedOver: Int64 = 0
    var taken: Int64 = 0
    private var held: Int64 = 0
    private var filesHeld: Int64 = 0
    var outboundWatch = RateWatch()

    private(set) var isOver = false

    init(_ worker: Worker, _ connection: HTTP2Connection) {
        self.worker = worker
        self.connection = connection
    }

    // MARK: Channel events

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        let id = try? context.channel.syncOptions?.getOption(HTTP2StreamChannelOptions.streamID)
        self.id = id.map { Int($0) } ?? 0
        connection.began(self)
    }

    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    func channelInactive(context: ChannelHandlerContext) {
        leave()
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    /// Makes what was written go out.
    func flush() { context?.flush() }

    // MARK: Accounts

    /// swift-nio-http2 has put content into a frame.
    func wroteFrame(_ count: Int64, isLast: Bool) {
        queued -= count
        connection.queued -= count
        guard isLast else { return }
        isEndFramed = true
        guard !isRequestComplete else { return }
        let handler = NIOLoopBound(self, eventLoop: worker.eventLoop)
        worker.eventLoop.execute { handler.value.refuseTheRest() }
    }

    /// "A server MAY request that the client abort transmission of a request without error by sending a RST_STREAM with
    /// an error code of NO_ERROR after sending a complete response" (RFC 9113 section 8.1).
    private func refuseTheRest() {
        if !isRequestComplete, !isOver { reset(.noError) }
    }

    /// Content is handed over.
    func willWrite(_ count: Int64) {
        handedOver += count
        queued += count
        connection.handedOver += count
        connection.queued += count
        if let left { self.left = left - count }
    }

    /// The kernel has taken content, or it has been dropped with its stream.
    func didWrite(_ count: Int64, isTaken: Bool) {
        if isTaken {
            taken += count
            connection.taken += count
            record?.bytesSent += count
            worker.counters.bytesOut += UInt64(count)
        } else {
            handedOver -= count
            connection.handedOver -= count
        }
        account()
    }

    /// Tells the connection how much is in memory.
    func account() {
        let (bytes, files) = (content.memory + handedOver - taken - held, content.fileCost - filesHeld)
        guard bytes != 0 || files != 0 else { return }
        held += bytes
        filesHeld += files
        connection.hold(bytes, files: files)
    }

    // MARK: Endings

    /// Everything is with the kernel, or will never be.
    func isWritten(_ isTaken: Bool) {
        // Not even framed: the answer contradicts its own head.
        guard isTaken || isOver else { return fail() }
        guard var record else { return }
        if !isTaken {
            // The connection ended before: the client has left, or was too slow.
            if !connection.isCutOff { worker.counters.clientAborts += 1 }
            record.isIncomplete = true
        }
        worker.finished(record)
        self.record = nil
    }

    /// The answer will not be complete: resets the stream.
    func fail(_ code: NIOHTTP2.HTTP2ErrorCode = .internalError) {
        if var record {
            record.isIncomplete = true
            worker.finished(record)
            self.record = nil
        }
        reset(code)
    }

    private func reset(_ code: NIOHTTP2.HTTP2ErrorCode) {
        context?.triggerUserOutboundEvent(NIOHTTP2FramePayloadToHTTPEvent.reset(code: code), promise: nil)
    }

    /// The stream is closed.
    private func leave() {
        guard !isOver else { return }
        isOver = true
        delivery?.cancel()
        delivery = nil
        inlet?.fail()
        // It asks this handler for more.
        inlet = nil
        early = []
        content.drop()
        if !isEndFramed {
            // What was not put into a frame by now never will be.
            connection.queued -= queued
            queued = 0
            if var record {
                if !connection.isCutOff { worker.counters.clientAborts += 1 }
                record.isIncomplete = true
                worker.finished(record)
            }
            record = nil
        }
        account()
        connection.ended(self)
        connection.send()
    }
}
