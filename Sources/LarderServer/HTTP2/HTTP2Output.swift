import NIOCore

/// What goes to the client of an HTTP/2 connection: collects frames, passes them to the channel in one write, and knows
/// how much of them the kernel has taken. On the event loop only.
final class HTTP2Output {
    /// Where the content of a stream ends in what was written.
    private struct Mark {
        let stream: HTTP2StreamOutput
        let end: Int64
        let count: Int64
    }

    /// Frames that are not flushed wait for more, up to this many bytes.
    static let flushSize = 64 << 10
    /// Beyond this many bytes that the client does not take, nothing more is read from it: even what it only asks for
    /// with small frames has answers.
    private static let readLimit = 256 << 10

    private let worker: Worker
    private let channel: any Channel
    private var context: ChannelHandlerContext?
    var windows = HTTP2Windows()
    private var frames = ByteBuffer()
    /// Bytes of frames that were written.
    private(set) var written: Int64 = 0
    /// Of these, what the kernel has taken.
    private(set) var taken: Int64 = 0
    private var marks = CircularBuffer<Mark>()
    /// The next field block says that the tables are not used: also after each change that the client makes to them
    /// (RFC 7541 section 4.2).
    var owesTableSize = true
    /// Answers to what comes in one read go out in one write.
    var isCorked = false
    /// What was written goes out after what else the event loop does now, and may write to other streams.
    private var isDue = false

    init(_ worker: Worker, _ channel: any Channel) {
        self.worker = worker
        self.channel = channel
    }

    func attach(_ context: ChannelHandlerContext) { self.context = context }

    /// Whether the kernel has taken everything.
    var isAllTaken: Bool { taken == written }

    /// Whether the client takes more at once.
    var isWritable: Bool { context != nil && channel.isWritable && frames.readableBytes < Self.flushSize }

    /// See ``SendQueue/unacknowledged(_:)``.
    var unacknowledgedBytes: Int { SendQueue.unacknowledged(channel) }

    /// Whether more may be read from the client.
    var allowsReading: Bool { channel.isWritable || SendQueue.pending(channel) < Self.readLimit }

    // MARK: Writing

    /// Writes frames. They do not go out before ``push()``, which may lead back here.
    func write(_ body: (inout ByteBuffer) -> Void) {
        guard context != nil else { return }
        let count = frames.readableBytes
        if count == 0 { frames.reserveCapacity(4_096) }
        body(&frames)
        written += Int64(frames.readableBytes - count)
    }

    /// Writes HEADERS.
    /// - Parameter fields: writes the fields.
    func writeHead(_ status: Int, stream: Int, endsStream: Bool, _ fields: (inout ByteBuffer) -> Void) {
        write { frames in
            frames.writeHeaders(stream: stream, endsStream: endsStream) { block in
                if owesTableSize { block.writeHPACKTableSizeOfZero() }
                block.writeHPACKStatus(status)
                fields(&block)
            }
        }
        owesTableSize = false
    }

    /// Writes DATA, as much as the windows allow at most.
    func writeData(_ bytes: UnsafeRawBufferPointer, stream: Int, endsStream: Bool) {
        windows.sent(Int64(bytes.count))
        write { frames in
            frames.reserveCapacity(minimumWritableBytes: bytes.count + bytes.count / 1_024 + HTTP2Frame.headLength)
            frames.writeData(bytes, stream: stream, endsStream: endsStream)
        }
    }

    /// Tells the stream when the kernel has taken what was written up to now.
    func mark(_ stream: HTTP2StreamOutput, count: Int64) {
        guard context != nil else { return stream.settle(count, isTaken: false) }
        marks.append(Mark(stream: stream, end: written, count: count))
    }

    /// Makes what was written go out soon, together with what is about to be written.
    func flush() {
        if frames.readableBytes >= Self.flushSize { return push() }
        guard !isCorked, !isDue, frames.readableBytes > 0 else { return }
        isDue = true
        let output = NIOLoopBound(self, eventLoop: channel.eventLoop)
        channel.eventLoop.execute {
            output.value.isDue = false
            output.value.push()
        }
    }

    /// Makes what was written go out.
    func push() {
        guard frames.readableBytes > 0, context != nil else { return }
        _ = handOver()
        context?.flush()
    }

    /// Runs `body` when the kernel has everything.
    func whenTaken(_ body: @escaping () -> Void) {
        guard let write = handOver() else { return body() }
        context?.flush()
        write.assumeIsolated().whenComplete { _ in body() }
    }

    private func handOver() -> EventLoopFuture<Void>? {
        guard let context else { return nil }
        let bytes = frames
        frames = ByteBuffer()
        worker.counters.bytesOut += UInt64(bytes.readableBytes)
        let end = written
        let write = context.write(NIOAny(bytes))
        write.assumeIsolated().whenSuccess { self.took(upTo: end) }
        return write
    }

    private func took(upTo end: Int64) {
        taken = max(taken, end)
        while let mark = marks.first, mark.end <= end {
            marks.removeFirst()
            mark.stream.settle(mark.count, isTaken: true)
        }
    }

    /// The connection has ended: what was not taken never will be.
    func leave() {
        context = nil
        frames = ByteBuffer()
        while let mark = marks.popFirst() { mark.stream.settle(mark.count, isTaken: false) }
    }
}
