import HTTPTypes
import LarderHTTP
import Locks

/// A transport whose answers a test writes, without sockets; it keeps what was asked. Safe to use from any thread.
public final class ScriptedTransport: Transport {
    /// Answers a request.
    public typealias Handler = @Sendable (TransportRequest) async throws(TransportError) -> TransportResponse

    private struct State {
        var handler: Handler
        var sent: [TransportRequest] = []
        var watching: [(count: Int, continuation: CheckedContinuation<Void, Never>)] = []
    }

    private let state: Mutex<State>

    /// Makes a transport. Default: it reaches no origin.
    public init(_ handler: @escaping Handler = ScriptedTransport.unreachable) {
        state = Mutex(State(handler: handler))
    }

    /// Fails as if nothing listened.
    public static let unreachable: Handler = { _ throws(TransportError) in
        throw TransportError(.cannotConnect, mayHaveBeenSeen: false, "nothing listens there")
    }

    /// What answers from now on.
    public var handler: Handler {
        get { state.withLock { $0.handler } }
        set { state.withLock { $0.handler = newValue } }
    }

    /// The requests so far, without content and `onInformational`: their closures would keep objects of the client
    /// alive.
    public var sent: [TransportRequest] { state.withLock { $0.sent } }

    /// The heads of the requests so far.
    public var requests: [HTTPRequest] { sent.map(\.head) }

    /// The requests so far, which are then forgotten.
    public func takeSent() -> [TransportRequest] {
        state.withLock { state in
            defer { state.sent = [] }
            return state.sent
        }
    }

    /// Waits until `count` requests have been sent since the last call of `takeSent()`.
    /// - Parameter count: 1 or more. Default: 1.
    public func waitForRequests(_ count: Int = 1) async {
        await withCheckedContinuation { continuation in
            let isThere = state.withLock { state in
                if state.sent.count >= count { return true }
                state.watching.append((count, continuation))
                return false
            }
            if isThere { continuation.resume() }
        }
    }

    /// Keeps the request, and answers it.
    public func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
        var kept = request
        (kept.body, kept.onInformational) = (nil, nil)
        let (handler, watching) = state.withLock { [kept] state in
            state.sent.append(kept)
            let reached = state.watching.filter { $0.count <= state.sent.count }
            state.watching.removeAll { $0.count <= state.sent.count }
            return (state.handler, reached)
        }
        for watcher in watching { watcher.continuation.resume() }
        return try await handler(request)
    }
}

extension TransportResponse {
    /// A response with its body in one piece, and just these fields.
    public static func answer(
        _ status: Int = 200, _ fields: HTTPFields = [:], _ body: String = ""
    ) -> TransportResponse {
        answer(HTTPResponse(status: .init(code: status), headerFields: fields), Array(body.utf8))
    }

    /// A response with its body in one piece.
    /// - Parameter isComplete: false for one of unknown length whose connection ends within the body.
    public static func answer(
        _ head: HTTPResponse, _ body: [UInt8], isComplete: Bool = true
    ) -> TransportResponse {
        let pieces = Pieces(body.isEmpty ? [] : [body], isComplete: isComplete)
        return TransportResponse(head: head, body: pieces.body(length: isComplete ? Int64(body.count) : nil))
    }

    /// A response with a text, and with `Content-Length` where that is declared.
    public static func text(
        _ text: String, status: Int = 200, reason: String? = nil, _ fields: HTTPFields = [:],
        declaresLength: Bool = true
    ) -> TransportResponse {
        bytes(Array(text.utf8), status: status, reason: reason, fields, declaresLength: declaresLength)
    }

    /// A response with bytes in pieces of 64 KiB, and with `Content-Length` where that is declared.
    public static func bytes(
        _ bytes: [UInt8], status: Int = 200, reason: String? = nil, _ fields: HTTPFields = [:],
        declaresLength: Bool = true
    ) -> TransportResponse {
        var fields = fields
        if declaresLength { fields[.contentLength] = String(bytes.count) }
        let starts = stride(from: 0, to: bytes.count, by: 65_536)
        let pieces = Pieces(starts.map { Array(bytes[$0..<min($0 + 65_536, bytes.count)]) })
        return TransportResponse(
            head: HTTPResponse(
                status: reason.map { .init(code: status, reasonPhrase: $0) } ?? .init(code: status),
                headerFields: fields),
            body: pieces.body(length: declaresLength ? Int64(bytes.count) : nil))
    }
}

/// Pieces in order, each taken once; then the end or an error.
public final class Pieces: Sendable {
    private let rest: Mutex<[[UInt8]]>
    private let isComplete: Bool

    /// - Parameter isComplete: false to end with an error.
    public init(_ pieces: [[UInt8]], isComplete: Bool = true) {
        rest = Mutex(pieces)
        self.isComplete = isComplete
    }

    /// The next piece; nil at the end.
    public func next() throws(TransportError) -> [UInt8]? {
        if let piece = rest.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) { return piece }
        if !isComplete {
            throw TransportError(.incompleteResponse, mayHaveBeenSeen: true, "the connection closed early")
        }
        return nil
    }

    /// A body of these pieces.
    /// - Parameter length: in bytes; nil where it is not declared.
    public func body(length: Int64?) -> TransportBody {
        TransportBody(length: length) { () throws(TransportError) in try self.next() }
    }
}
