import HTTPTypes
import HTTPWire
import LarderHTTP
import NIOCore

/// One request and its response on a connection.
// SAFETY: everything that changes is read and changed on the connection's event loop only, by its handler, which
// `deliver()` and `append(_:)` assert.
final class Exchange: @unchecked Sendable {
    typealias Waiter<Value> = CheckedContinuation<Result<Value, TransportError>, Never>

    /// A head, or that there is none to come.
    enum HeadEvent: Sendable {
        case informational(HTTPResponse)
        /// The final head, the length of its content where it is known, and the content that came with it.
        case final(HTTPResponse, length: Int64?, Piece)
        /// The connection had closed before; nothing was sent.
        case stale
    }

    /// Content, and whether it is the last.
    struct Piece: Sendable {
        var bytes: [UInt8]
        var isLast: Bool
    }

    let message: RequestMessage
    let endpoint: NIOTransport.Endpoint
    let connection: Connection
    /// Whether the connection was used before.
    let isKept: Bool
    let timeouts: Timeouts

    // MARK: Request

    /// Whether a byte of it may be on its way.
    var hasBegun = false
    /// Bytes of content that were handed to the connection.
    var sent: Int64 = 0
    var isRequestComplete = false
    var upload: Task<Void, Never>?
    /// Given up before it began.
    var abortion: TransportError?

    // MARK: Response

    /// The most interim responses to one request: more than any server sends, so that there is an end to them.
    static let maximumInterim = 64
    var interimCount = 0
    var interim: HTTPResponse?
    /// The final head, until it is taken.
    var head: (response: HTTPResponse, length: Int64?)?
    /// There from the final head on.
    var decoder: BodyDecoder?
    var persists = false
    /// Content that was not taken yet, in pieces of 64 KiB at most.
    private var pieces: [[UInt8]] = []
    /// Bytes in them.
    private(set) var waitingBytes = 0 { didSet { share.set(Self.readBytes + waitingBytes) } }
    private let share: HeldBytes.Share
    var isEnded = false
    var failure: TransportError?
    var headWaiter: Waiter<HeadEvent>?
    var pieceWaiter: Waiter<Piece>?

    init(
        _ message: RequestMessage, _ request: TransportRequest, endpoint: NIOTransport.Endpoint, connection: Connection,
        isKept: Bool, held: HeldBytes
    ) {
        share = HeldBytes.Share(of: held)
        self.message = message
        self.endpoint = endpoint
        self.connection = connection
        self.isKept = isKept
        timeouts = request.timeouts
    }

    /// How long what is waited for now may take; nil while nothing is.
    /// - Parameter isSending: whether the server has not taken all of the request, nor answered.
    func timeLimit(isSending: Bool) -> Duration? {
        if isSending { return timeouts.write }
        return headWaiter != nil && isRequestComplete || pieceWaiter != nil ? timeouts.read : nil
    }

    /// Gives the waiter what is there: content before the error behind it.
    func deliver() {
        connection.channel.eventLoop.assertInEventLoop()
        if let waiter = headWaiter, let event = takeHeadEvent() {
            headWaiter = nil
            waiter.resume(returning: event)
        }
        if let waiter = pieceWaiter, let piece = takePiece() {
            pieceWaiter = nil
            waiter.resume(returning: piece)
        }
    }

    private func takeHeadEvent() -> Result<HeadEvent, TransportError>? {
        if let response = interim {
            interim = nil
            return .success(.informational(response))
        }
        if let head {
            self.head = nil
            return .success(.final(head.response, length: head.length, takeContent()))
        }
        return failure.map { .failure($0) }
    }

    private func takePiece() -> Result<Piece, TransportError>? {
        if !pieces.isEmpty || isEnded { return .success(takeContent()) }
        return failure.map { .failure($0) }
    }

    private func takeContent() -> Piece {
        let bytes = pieces.isEmpty ? [] : pieces.removeFirst()
        waitingBytes -= bytes.count
        return Piece(bytes: bytes, isLast: isEnded && pieces.isEmpty)
    }

    /// Adds content. Small parts become one piece.
    func append(_ bytes: Slice<UnsafeRawBufferPointer>) {
        connection.channel.eventLoop.assertInEventLoop()
        waitingBytes += bytes.count
        if let last = pieces.indices.last, pieces[last].count + bytes.count <= Self.pieceBytes {
            // A piece may wait for a long time when the client is slow: it gets no more room than it can use.
            let count = pieces[last].count + bytes.count
            if count > pieces[last].capacity { pieces[last].reserveCapacity(min(2 * count, Self.pieceBytes)) }
            pieces[last].append(contentsOf: bytes)
        } else {
            pieces.append(Array(bytes))
        }
    }

    private static let pieceBytes = 64 << 10
    /// What a connection has to read into, in bytes: counted once the head of the response has been taken.
    private static let readBytes = 64 << 10
}
