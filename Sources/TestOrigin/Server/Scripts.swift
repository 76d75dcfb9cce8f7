import Locks

/// The answers for each path.
final class Scripts: Sendable {
    struct Entry: Sendable {
        var answersOnHead: Bool
        var responder: TestOrigin.Responder
    }

    private let entries = Mutex<[String: Entry]>([:])
    private let otherwise: Entry

    init(otherwise: @escaping TestOrigin.Responder) {
        self.otherwise = Entry(answersOnHead: false, responder: otherwise)
    }

    func set(_ path: String, answersOnHead: Bool, _ responder: @escaping TestOrigin.Responder) {
        entries.withLock { $0[path] = Entry(answersOnHead: answersOnHead, responder: responder) }
    }

    func entry(for request: OriginRequest) -> Entry {
        entries.withLock { $0[request.target] ?? $0[request.path] } ?? otherwise
    }
}
