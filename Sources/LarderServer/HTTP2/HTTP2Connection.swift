import LarderHTTP
import NIOCore

/// A client connection that speaks HTTP/2 (RFC 9113): takes the events of its channel, keeps the table of its streams,
/// and ends. `HTTP2Connection+Frames` says what each frame does.
///
/// Each owner below keeps its own state: ``HTTP2FrameReader`` and ``HTTP2HeadReader`` what has come, ``HTTP2Output``
/// what goes out, ``HTTP2Scheduler`` who may send, ``HTTP2Deadlines`` the limits in time, ``HTTP2Stream`` a request
/// whose answer is not written at once.
final class HTTP2Connection: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    let worker: Worker
    private let channel: any Channel
    let output: HTTP2Output
    let scheduler: HTTP2Scheduler
    let plainHits: HTTP2PlainHits
    private var reader = HTTP2FrameReader()
    var heads: HTTP2HeadReader
    /// When the first byte of a frame or a head came that is not complete.
    private var insideSince: NIODeadline?
    /// When the gateway said that it takes no new streams.
    private var leavingSince: NIODeadline?
    /// What comes on streams after ``lastStream`` is passed over.
    private(set) var ignoresNewStreams = false
    private var deadlines: HTTP2Deadlines
    var intake = HTTP2Intake()
    private(set) var streams: [Int: HTTP2Stream] = [:]
    /// Streams that came in the read under way, of which it is not known whether content follows.
    var undecided: [HTTP2Stream] = []
    /// Streams that the gateway has reset: what the client sent before it knew is passed over.
    private(set) var resetStreams: RecentStreams
    private(set) var endedStreams = RecentStreams(256)
    var lastStream = 0
    /// The client has sent its settings.
    var hasSettings = false
    /// It takes no new streams.
    private(set) var isLeaving = false
    /// Its last frame is written.
    private var isOver = false
    private var resets = ResetCount()
    private var requestCount = 0
    private var hasPendingRead = false
    private(set) var client = "local"
    private(set) var isLoopback = false

    init(_ worker: Worker, _ channel: any Channel) {
        self.worker = worker
        self.channel = channel
        output = HTTP2Output(worker, channel)
        scheduler = HTTP2Scheduler(worker, output)
        plainHits = HTTP2PlainHits(worker, output, scheduler)
        heads = HTTP2HeadReader(limit: Self.announcedHeadBytes(worker.core.configuration.limits))
        deadlines = HTTP2Deadlines(worker.core.time.now())
        resetStreams = RecentStreams(max(256, 2 * worker.core.configuration.limits.streams))
    }

    /// What the gateway announces as the longest head. A longer one ends the connection, as its fields cannot be passed
    /// over without being decoded. So this is more than the gateway takes, and a head in between gets 431.
    private static func announcedHeadBytes(_ limits: GatewayLimits) -> Int {
        min(max(4 * limits.headBytes, 256 << 10), 64 << 20)
    }

    // MARK: Channel events

    func handlerAdded(context: ChannelHandlerContext) {
        // Added when the handshake is over, on a connection that is active.
        output.attach(context)
        client = context.channel.remoteAddress?.ipAddress ?? "local"
        isLoopback = context.channel.remoteAddress?.isLoopback ?? false
        worker.add(self)
        let limits = worker.core.configuration.limits
        output.write {
            // SETTINGS_MAX_CONCURRENT_STREAMS, SETTINGS_MAX_HEADER_LIST_SIZE.
            $0.writeSettings([(3, UInt32(limits.streams)), (6, UInt32(Self.announcedHeadBytes(limits)))])
        }
        output.push()
        if worker.isDraining { drain() }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isOver else { return }
        var bytes = unwrapInboundIn(data)
        worker.counters.bytesIn += UInt64(bytes.readableBytes)
        reader.keep(&bytes)
        output.isCorked = true
        do throws(HTTP2Fault) {
            while !isOver, let frame = try reader.next() {
                do throws(HTTP2Fault) {
                    try receive(frame)
                } catch .stream(let id, let code) {
                    countReset()
                    reset(id, code)
                }
                if heads.openStream == nil { insideSince = nil }
                output.flush()
            }
        } catch .connection(let code) {
            worker.counters.malformedRequests += 1
            close(code)
        } catch {
            close(.internalError)
        }
        reader.release()
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        let streams = undecided
        undecided = []
        for stream in streams { stream.readComplete() }
        if insideSince == nil, reader.isInside || heads.openStream != nil { insideSince = worker.core.time.now() }
        scheduler.send()
        output.isCorked = false
        output.push()
        context.fireChannelReadComplete()
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        if context.channel.isWritable {
            scheduler.send()
            resumeReading(context)
        }
        context.fireChannelWritabilityChanged()
    }

    func channelInactive(context: ChannelHandlerContext) {
        leave()
        context.fireChannelInactive()
    }

    func handlerRemoved(context: ChannelHandlerContext) { leave() }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // Of the connection or of TLS: there is no way to tell the client.
        context.close(promise: nil)
    }

    /// A client that asks and does not read gets no further.
    func read(context: ChannelHandlerContext) {
        if output.allowsReading { context.read() } else { hasPendingRead = true }
    }

    private func resumeReading(_ context: ChannelHandlerContext) {
        guard hasPendingRead else { return }
        hasPendingRead = false
        context.read()
    }

    /// A request that is cancelled as soon as it is sent, or one that has to be reset, costs more than it takes from
    /// the client (RFC 9113 section 10.5). A client with very many is cut off, without a word about what was processed:
    /// it would send requests again that were.
    func countReset() {
        guard resets.isTooMany(at: worker.core.time.now()) else { return }
        worker.core.logger.warning(
            "a client cancels too many requests: its connection is cut off",
            metadata: ["category": "connections", "client": "\(client)", "limit": "\(ResetCount.limit) in 30 s"])
        reset()
    }

    // MARK: Streams

    private func countRequest() {
        requestCount += 1
        if requestCount >= worker.core.configuration.limits.requestsPerConnection { drain() }
    }

    func begin(_ id: Int) -> HTTP2Stream {
        let stream = HTTP2Stream(id, worker, self)
        streams[id] = stream
        countRequest()
        return stream
    }

    /// A stream was answered at once.
    func answered(_ id: Int) {
        endedStreams.append(id)
        deadlines.restart(worker.core.time.now())
        countRequest()
    }

    /// Request and answer are complete, or the client has reset the stream.
    func end(_ stream: HTTP2Stream) {
        guard streams[stream.id] === stream else { return }
        endedStreams.append(stream.id)
        forget(stream)
    }

    /// Resets a stream.
    func reset(_ id: Int, _ code: HTTP2Code) {
        output.write { $0.writeReset(stream: id, code) }
        resetStreams.append(id)
        if let stream = streams[id] { forget(stream) }
    }

    private func forget(_ stream: HTTP2Stream) {
        streams[stream.id] = nil
        stream.leave()
        deadlines.restart(worker.core.time.now())
        if isLeaving, streams.isEmpty { close(.noError) }
        scheduler.send()
    }

    // MARK: Endings

    /// Says goodbye, and closes when that is written. ``tick(_:)`` sees to it that a client that does not read cannot
    /// put this off.
    private func close(_ code: HTTP2Code) {
        guard !isOver else { return }
        isOver = true
        isLeaving = true
        output.write { $0.writeGoAway(lastStream: lastStream, code) }
        if code != .noError { leaveStreams() }
        output.whenTaken { self.channel.close(promise: nil) }
    }

    /// The connection has ended.
    private func leave() {
        isOver = true
        worker.remove(self)
        leaveStreams()
        output.leave()
    }

    private func leaveStreams() {
        scheduler.stop()
        undecided = []
        let open = streams.values
        streams = [:]
        for stream in open { stream.leave() }
    }
}

extension HTTP2Connection: SupervisedConnection {
    var remoteAddress: SocketAddress? { channel.remoteAddress }
    var heldBytes: Int { Int(scheduler.held) }
    var progress: Int64 { deadlines.progress(taken: output.taken) }

    func footprint(progress: Int64) -> Int {
        streams.values.reduce(heldBytes + heads.heldBytes) { $0 + $1.footprint(isMoving: progress > 0) }
    }

    var sources: [ClosedConnections.Source] { streams.values.compactMap(\.source) }

    func tick(_ now: NIODeadline) {
        if let leavingSince, !ignoresNewStreams, !isOver, now - leavingSince >= Self.roundTrip { refuseNewStreams() }
        if let insideSince, now - insideSince > TimeAmount(worker.core.configuration.limits.headTimeout) {
            worker.counters.timeouts += 1
            return abort()
        }
        let situation = HTTP2Deadlines.Situation(
            hasStreams: !streams.isEmpty, isAllTaken: output.isAllTaken, isBlocked: isBlocked, taken: output.taken,
            unacknowledged: SendQueue.unacknowledged(channel))
        switch deadlines.check(situation, now, worker.core.configuration.limits) {
        case .isTooSlow:
            worker.counters.timeouts += 1
            abort()
        case .isIdle: drain()
        case .inTime: tickStreams(now)
        }
        output.flush()
    }

    /// Whether something is there for the client that it does not take, for another reason than a stream's own window.
    private var isBlocked: Bool { !output.isAllTaken || SendQueue.pending(channel) > 0 || scheduler.isOutOfWindow }

    private func tickStreams(_ now: NIODeadline) {
        let isProgressing = streams.values.contains(where: \.isProgressing)
        var isStalled = false
        for stream in streams.values where stream.tick(now) { isStalled = true }
        // Not one of its streams gets on: what it asks for next would not either.
        if isStalled, !isProgressing { drain() }
    }

    /// No new streams; those that are open end as they would. RFC 9113 section 6.8: "a server that is attempting to
    /// gracefully shut down a connection SHOULD send an initial GOAWAY frame with the last stream identifier set to
    /// 2^31-1".
    func drain() {
        guard !isLeaving else { return }
        isLeaving = true
        leavingSince = worker.core.time.now()
        deadlines.restart(worker.core.time.now())
        output.write { $0.writeGoAway(lastStream: 0x7FFF_FFFF, .noError) }
        if streams.isEmpty { close(.noError) } else { output.flush() }
    }

    /// "After allowing time for any in-flight stream creation (at least one round-trip time), the server MAY send
    /// another GOAWAY frame with an updated last stream identifier."
    private func refuseNewStreams() {
        ignoresNewStreams = true
        output.write { $0.writeGoAway(lastStream: lastStream, .noError) }
        output.flush()
    }

    private static let roundTrip = TimeAmount.seconds(1)

    func abort() { reset() }

    /// What was not taken is lost to a client that is cut off in the middle.
    func reset() {
        scheduler.isCutOff = true
        isOver = true
        channel.reset()
    }
}
