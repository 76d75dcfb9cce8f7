import HTTPTypes
import HTTPWire
import LarderHTTP
import NIOCore

/// One request and its response on a connection: what of them was sent and has come, and who waits.
// SAFETY: everything that changes is read and changed on the connection's event loop only, by its handler, which
// `deliver()` and `append(_:)` assert.
final class Exchange: @unchecked Sendable {
    /// Who waits for something: a task, or a call on the event loop.
    enum Waiter<Value: Sendable>: Sendable {
        case task(CheckedContinuation<Result<Value, TransportError>, Never>)
        case call(@Sendable (Result<Value, TransportError>) -> Void)

        func resume(returning result: Result<Value, TransportError>) {
            switch self {
            case .task(let continuation): continuation.resume(returning: result)
            case .call(let body): body(result)
            }
        }
    }

    /// A head, or that there is none to come.
    enum HeadEvent: Sendable {
        case informational(HTTPResponse)
        /// The final head, the length of its content where it is known, and the content that came with it.
        case final(HeadForm, length: Int64?, Piece)
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
    private(set) var hasBegun = false
    /// Bytes of content that were handed to the connection.
    private var sent: Int64 = 0
    private(set) var isRequestComplete = false
    private var upload: Task<Void, Never>?
    /// Begins the upload when the server has not answered an expectation for a while.
    private var patience: Scheduled<Void>?
    private var isUploadOver = false
    /// Given up before it began.
    private(set) var abortion: TransportError?

    // MARK: Response

    /// The most interim responses to one request, so that there is an end to them: a server that says every five
    /// seconds that it is at work (102) may take half a day.
    private static let maximumInterim = 10_000
    private var interimCount = 0
    /// An interim response, until it is taken.
    private var interim: HTTPResponse?
    /// When the final head has to be there. Of interim responses only 102 (Processing) begins the time again: a server
    /// that sends others would hold the client.
    private var headDeadline: NIODeadline?
    /// The final head, until it is taken.
    private var head: (form: HeadForm, length: Int64?)?
    /// Content that was not taken yet, in pieces of 64 KiB at most.
    private var pieces: [[UInt8]] = []
    /// Bytes in them.
    private(set) var waitingBytes = 0 { didSet { share.set(Self.readBytes + waitingBytes) } }
    private let share: HeldBytes.Share
    private var isEnded = false
    private var failure: TransportError?
    private var headWaiter: Waiter<HeadEvent>?
    private var pieceWaiter: Waiter<Piece>?

    init(
        _ message: RequestMessage, _ timeouts: Timeouts, endpoint: NIOTransport.Endpoint, connection: Connection,
        isKept: Bool, held: HeldBytes
    ) {
        share = HeldBytes.Share(of: held)
        self.message = message
        self.endpoint = endpoint
        self.connection = connection
        self.isKept = isKept
        self.timeouts = timeouts
    }

    // MARK: What is waited for

    /// Whether a head is waited for.
    var wantsHead: Bool { headWaiter != nil }

    func wait(_ waiter: Waiter<HeadEvent>) { headWaiter = waiter }
    func wait(_ waiter: Waiter<Piece>) { pieceWaiter = waiter }

    /// How long what is waited for now may take; nil while nothing is.
    /// - Parameter isSending: whether the server has not taken all of the request, nor answered.
    func timeLimit(isSending: Bool) -> TimeAmount? {
        if isSending { return TimeAmount(timeouts.write) }
        let whole = TimeAmount(timeouts.read)
        if pieceWaiter != nil { return whole }
        guard headWaiter != nil, isRequestComplete else { return nil }
        let deadline = headDeadline ?? .now() + whole
        headDeadline = deadline
        return max(.zero, deadline - .now())
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
            return .success(.final(head.form, length: head.length, takeContent()))
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

    // MARK: The request goes out

    /// The request is about to be sent; `waiter` gets the first head that answers it.
    func begin(_ waiter: Waiter<HeadEvent>) {
        headWaiter = waiter
        hasBegun = true
        isRequestComplete = message.stream == nil
    }

    /// Begins to send content that comes from a source: at once, or with `Expect: 100-continue` when the server asks
    /// for it, or has said nothing for a second. "Because of the presence of older implementations ... such a client
    /// SHOULD NOT wait for an indefinite period before sending the content" (RFC 9110 section 10.1.1).
    func startUpload() {
        guard message.stream != nil, !isUploadOver else { return }
        guard message.expectsContinue else { return sendContent() }
        patience = connection.channel.eventLoop.scheduleTask(in: .seconds(1)) { self.sendContent() }
    }

    private func sendContent() {
        patience?.cancel()
        guard let body = message.stream, upload == nil, !isUploadOver else { return }
        upload = Task { await Upload(body: body, exchange: self).run() }
    }

    private func endUpload() {
        isUploadOver = true
        patience?.cancel()
        upload?.cancel()
    }

    /// Counts content that is handed to the connection: with the last byte of its declared length it is complete.
    func countSent(_ count: Int) {
        sent += Int64(count)
        if message.stream?.length == sent { isRequestComplete = true }
    }

    /// All the content has been handed to the connection.
    func completeRequest() { isRequestComplete = true }

    // MARK: The response comes

    /// Whether an interim response has not been taken.
    var hasInterim: Bool { interim != nil }

    /// Whether an interim response has come.
    var hasHadInterim: Bool { interimCount > 0 }

    /// Takes an interim response.
    /// - Returns: false for one that is not accepted: 101, as no other protocol was asked for, or one too many.
    func receive(interim response: HTTPResponse) -> Bool {
        interimCount += 1
        guard response.status.code != 101, interimCount <= Self.maximumInterim else { return false }
        interim = response
        if response.status == .continue { sendContent() }
        if response.status.code == 102 { headDeadline = nil }
        return true
    }

    /// Takes the final head. The server reads no more of the request.
    /// - Parameter length: of the content, in bytes; nil where it is not known.
    func receive(_ response: HeadForm, length: Int64?) {
        head = (response, length)
        endUpload()
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

    // MARK: The end

    /// The response is complete.
    func end() {
        isEnded = true
        endUpload()
    }

    /// The response will not be complete.
    func fail(_ error: TransportError) {
        failure = error
        endUpload()
    }

    /// It is given up before it has begun.
    func giveUp(_ error: TransportError) { abortion = error }

    /// Ends without a result, as nothing was sent.
    /// - Returns: who waits for the head.
    func withdraw() -> Waiter<HeadEvent>? {
        defer { headWaiter = nil }
        endUpload()
        return headWaiter
    }

    private static let pieceBytes = 64 << 10
    /// What a connection has to read into, in bytes: counted once the head of the response has been taken.
    private static let readBytes = 64 << 10
}
