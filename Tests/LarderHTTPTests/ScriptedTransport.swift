import HTTPTypes
import LarderHTTP
import Synchronization

/// A transport whose answers a test writes, without sockets.
final class ScriptedTransport: Transport {
    typealias Handler = @Sendable (TransportRequest) async throws(TransportError) -> TransportResponse

    private struct State {
        var handler: Handler
        var sent: [TransportRequest] = []
    }

    private let state: Mutex<State>

    init(_ handler: @escaping Handler = ScriptedTransport.unreachable) { state = Mutex(State(handler: handler)) }

    static let unreachable: Handler = { _ throws(TransportError) in
        throw TransportError(.cannotConnect, mayHaveBeenSeen: false, "nothing listens there")
    }

    var handler: Handler {
        get { state.withLock { $0.handler } }
        set { state.withLock { $0.handler = newValue } }
    }

    /// The requests so far.
    var sent: [TransportRequest] { state.withLock { $0.sent } }

    func takeSent() -> [TransportRequest] {
        state.withLock { state in
            defer { state.sent = [] }
            return state.sent
        }
    }

    func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
        let handler = state.withLock { state in
            state.sent.append(request)
            return state.handler
        }
        return try await handler(request)
    }
}

extension TransportResponse {
    /// A response with its body in one piece.
    static func answer(_ status: Int = 200, _ fields: HTTPFields = [:], _ body: String = "") -> TransportResponse {
        answer(HTTPResponse(status: .init(code: status), headerFields: fields), Array(body.utf8))
    }

    static func answer(_ head: HTTPResponse, _ body: [UInt8], isComplete: Bool = true) -> TransportResponse {
        let rest = Pieces(body.isEmpty ? [] : [body], isComplete: isComplete)
        return TransportResponse(
            head: head,
            body: TransportBody(length: isComplete ? Int64(body.count) : nil) { () throws(TransportError) in
                try rest.next()
            })
    }
}

/// Pieces in order, then the end or an error.
final class Pieces: Sendable {
    private let rest: Mutex<[[UInt8]]>
    private let isComplete: Bool

    init(_ pieces: [[UInt8]], isComplete: Bool = true) {
        rest = Mutex(pieces)
        self.isComplete = isComplete
    }

    func next() throws(TransportError) -> [UInt8]? {
        if let piece = rest.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) { return piece }
        if !isComplete {
            throw TransportError(.incompleteResponse, mayHaveBeenSeen: true, "the connection closed early")
        }
        return nil
    }
}

/// Holds tasks up until a test opens it.
final class Gate: Sendable {
    private struct State {
        var isOpen = false
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())

    func open() {
        let waiting = state.withLock { state in
            state.isOpen = true
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    func pass() async {
        await withCheckedContinuation { continuation in
            let isOpen = state.withLock { state in
                if !state.isOpen { state.waiting.append(continuation) }
                return state.isOpen
            }
            if isOpen { continuation.resume() }
        }
    }
}
