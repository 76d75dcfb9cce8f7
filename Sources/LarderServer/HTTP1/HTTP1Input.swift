import HTTPWire
import NIOCore

/// What comes from the client of a connection: keeps bytes that nothing was done with yet, and finds requests in them.
final class HTTP1Input {
    /// The next request, or why there is none.
    enum Head {
        case incomplete
        case malformed(WireError)
        case request(RequestHead)
        /// A request whose answer the store had: ``PlainHits``.
        case hit(PlainHits.Answer)
    }

    /// What a client may send ahead while an answer is under way, in bytes.
    private static let pipelineLimit = 64 << 10

    private var bytes = ByteBuffer()
    private var scanner: HeadScanner
    /// When the first byte of an incomplete head came.
    private(set) var headBegan: NIODeadline?
    /// Bytes received, those of tunnels included.
    private(set) var received: Int64 = 0
    /// The client sends no more.
    private(set) var hasEnded = false

    init(_ limits: HeadLimits) { scanner = HeadScanner(limits: limits, isRequest: true) }

    /// Bytes that nothing was done with yet.
    var count: Int { bytes.readableBytes }
    var isEmpty: Bool { bytes.readableBytes == 0 }
    /// The room for them, in bytes.
    var capacity: Int { bytes.storageCapacity }
    /// Whether another request may be kept until its turn.
    var hasRoomForMore: Bool { bytes.readableBytes < Self.pipelineLimit }

    /// Counts bytes that came.
    func receive(_ count: Int) { received += Int64(count) }

    /// The client sends no more.
    func end() { hasEnded = true }

    /// Keeps bytes that came.
    func keep(_ new: inout ByteBuffer) {
        if bytes.readableBytes == 0 { return bytes = new }
        // Else it would grow by all that comes in pieces which end within a request.
        bytes.discardReadBytes()
        bytes.writeBuffer(&new)
    }

    /// Drops what was kept, and keeps the room.
    func clear() { bytes.clear() }

    /// Drops what was kept, and the room with it: it is not kept for a client that is silent.
    func release() { bytes = ByteBuffer() }

    /// What was kept, which is then empty.
    func takeAll() -> ByteBuffer {
        defer { bytes = ByteBuffer() }
        return bytes
    }

    /// Reads the next head, into the worker's view.
    /// - Parameter hit: answers a head from the store; nil for one that it does not answer. Called with the bytes of
    ///   the head while the view is of them.
    func nextHead(
        _ worker: Worker, scheme: String, hit: (UnsafeRawBufferPointer) -> PlainHits.Answer?
    ) -> Head {
        var length = 0
        let found: Head = bytes.withUnsafeReadableBytes { bytes in
            do throws(WireError) {
                guard let range = try scanner.scan(bytes) else { return .incomplete }
                let head = UnsafeRawBufferPointer(rebasing: bytes[range])
                try worker.view.parse(head, limits: worker.core.headLimits)
                length = range.upperBound
                if let answer = hit(head) { return .hit(answer) }
                return .request(try RequestHead(worker.view, in: head, scheme: scheme))
            } catch {
                return .malformed(error)
            }
        }
        switch found {
        case .incomplete:
            if headBegan == nil, scanner.hasBegun { headBegan = worker.core.time.now() }
        case .malformed:
            break
        case .request, .hit:
            scanner.reset()
            headBegan = nil
            bytes.moveReaderIndex(forwardBy: length)
        }
        return found
    }

    /// Reads content of a request as far as there is any, and room for it.
    func read(into content: RequestContent, isAnswered: Bool) -> RequestContent.Step {
        var position = 0
        let step = bytes.withUnsafeReadableBytes { content.read($0, at: &position, isAnswered: isAnswered) }
        bytes.moveReaderIndex(forwardBy: position)
        return step
    }
}
