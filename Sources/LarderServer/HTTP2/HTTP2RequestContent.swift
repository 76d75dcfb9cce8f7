import LarderHTTP
import NIOCore

/// The content of a request over HTTP/2: passes it to the load that sends it on, and keeps what comes before it is
/// known what is done about the request. Without a load it is dropped. On the event loop only.
final class HTTP2RequestContent {
    /// What may come before the load asks for more, in bytes. A connection may have many streams: each brings less
    /// content here than one of HTTP/1.1.
    private static let aheadLimit: Int64 = 64 << 10

    /// Where it goes.
    private var inlet: BodyInlet?
    /// Content that came before the request was answered.
    private var early: [[UInt8]] = []
    /// Content that came, in bytes.
    private(set) var received: Int64 = 0
    /// Content that the load has not asked for more after, in bytes.
    private var ahead: Int64 = 0
    private(set) var isComplete = false
    /// The client waits for 100 before it sends content.
    private var owesContinue = false
    private var watch = RateWatch()

    /// Bytes that wait for the load.
    var heldBytes: Int { early.reduce(inlet?.heldBytes ?? 0) { $0 + $1.count } }

    /// Whether there is room for more.
    var takesMore: Bool {
        guard let inlet else { return true }
        return inlet.takesMore && ahead < Self.aheadLimit
    }

    /// The client waits for 100 before it sends content.
    func expectContinue() { owesContinue = true }

    /// A load wants the content.
    func connect(_ inlet: BodyInlet) { self.inlet = inlet }

    // MARK: As it comes

    /// Counts content that has come.
    func count(_ bytes: Int) { received += Int64(bytes) }

    /// Keeps content until it is known what is done about the request.
    func keep(_ bytes: [UInt8]) { early.appendPiece(bytes) }

    /// Passes content on.
    func offer(_ bytes: [UInt8]) {
        ahead += Int64(bytes.count)
        inlet?.offer(bytes)
    }

    /// Passes on what was kept, and the end if it has come.
    func release() {
        for piece in early { offer(piece) }
        early = []
        if isComplete { inlet?.finish() }
    }

    /// The client has sent everything.
    func finish() {
        isComplete = true
        inlet?.finish()
    }

    /// The load asks for content.
    /// - Returns: whether the client waits to be told to send it.
    func isWanted() -> Bool {
        ahead = 0
        defer { owesContinue = false }
        return owesContinue && received == 0 && !isComplete
    }

    /// The load gets no more, and nothing is kept.
    func cutOff() {
        inlet?.fail()
        // It asks the stream for more.
        inlet = nil
        early = []
    }

    // MARK: Limits in time

    /// Whether content that the load waits for comes too slowly.
    func isTooSlow(_ now: NIODeadline, _ limits: GatewayLimits) -> Bool {
        let isAwaited = !isComplete && inlet != nil && takesMore && !owesContinue
        return watch.isTooSlow(isAwaited, received, now, limits)
    }
}
