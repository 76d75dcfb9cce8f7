/// How far the content that a connection sends has come, and how much more of it the client allows.
///
/// Content passes from ``HTTP2Responder`` to swift-nio-http2, which puts it into frames as the windows allow, and from
/// there to the kernel. On the event loop only.
final class HTTP2Flow {
    private var windows = HTTP2Windows()
    /// Content that swift-nio-http2 has and has not put into frames yet, in bytes.
    private(set) var queued: Int64 = 0
    /// Content that was handed to swift-nio-http2, in bytes.
    private var handedOver: Int64 = 0
    /// Of that, what the kernel has taken.
    private(set) var taken: Int64 = 0

    /// Whether the kernel has taken everything.
    var isAllTaken: Bool { handedOver == taken }

    /// What the connection may still be given, in bytes; below zero where it was given more than its window.
    var room: Int64 { windows.connection - queued }

    /// What a stream may still send, in bytes, whatever swift-nio-http2 already has of it.
    func window(of stream: Int) -> Int64 { windows.stream(stream) }

    // MARK: Frames

    /// A frame has come from the client.
    func received(_ frame: HTTP2FrameScanner.Frame) { windows.received(frame) }

    /// A DATA frame is on its way to the client.
    func sent(_ count: Int64, on stream: Int) { windows.sent(count, on: stream) }

    /// A stream is over.
    func forget(_ stream: Int) { windows.forget(stream) }

    /// Forgets windows of streams that are not open, if there are more than `limit` entries.
    func forget(over limit: Int, unless isOpen: (Int) -> Bool) { windows.forget(over: limit, unless: isOpen) }

    // MARK: Content

    /// Content is handed to swift-nio-http2.
    func handOver(_ count: Int64) {
        handedOver += count
        queued += count
    }

    /// Content left the queue of swift-nio-http2: it is in a frame, or was dropped with its stream.
    func unqueue(_ count: Int64) { queued -= count }

    /// What was handed over is with the kernel, or was dropped with its stream.
    func settle(_ count: Int64, isTaken: Bool) {
        if isTaken { taken += count } else { handedOver -= count }
    }
}
