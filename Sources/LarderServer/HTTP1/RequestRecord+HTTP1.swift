import HTTPWire
import NIOCore

/// Records of requests over HTTP/1. Texts are filled in only where there is a log for them.
extension RequestRecord {
    init(_ head: RequestHead, client: String, start: NIODeadline, isLogged: Bool) {
        let method = head.request.method
        self.init(
            start: start, methodIndex: method == .get ? 0 : ServerCounters.methodIndex(method.rawValue),
            logged: isLogged ? LoggedRequest(head, client: client) : nil)
    }

    /// Of a plain request, of which only the bytes are known, and the view of them.
    init(
        plain head: UnsafeRawBufferPointer, _ view: RequestHeadView, client: String, start: NIODeadline, isLogged: Bool
    ) {
        self.init(
            start: start, methodIndex: 0, logged: isLogged ? LoggedRequest(plain: head, view, client: client) : nil)
    }

    /// Of a request that cannot be read.
    init(unreadableFrom client: String, start: NIODeadline, isLogged: Bool) {
        self.init(
            start: start, methodIndex: ServerCounters.methods.count - 1,
            logged: isLogged ? LoggedRequest(client: client, method: "-", target: "-", version: "HTTP/1.1") : nil)
    }
}

extension LoggedRequest {
    fileprivate convenience init(_ head: RequestHead, client: String) {
        let request = head.request
        let target =
            switch head.targetForm {
            case .origin, .asterisk: request.path ?? ""
            case .authority: request.authority ?? ""
            case .absolute: "\(request.scheme ?? "")://\(request.authority ?? "")\(request.path ?? "")"
            }
        self.init(
            client: client, method: request.method.rawValue, target: target,
            version: head.version == .http11 ? "HTTP/1.1" : "HTTP/1.0", host: request.authority ?? "",
            referer: request.headerFields[.referer] ?? "", userAgent: request.headerFields[.userAgent] ?? "")
    }

    fileprivate convenience init(plain head: UnsafeRawBufferPointer, _ view: RequestHeadView, client: String) {
        func text(_ range: Range<Int>?) -> String { range.map { String(decoding: head[$0], as: UTF8.self) } ?? "" }
        self.init(
            client: client, method: text(view.method), target: text(view.target), version: "HTTP/1.1",
            host: text(view.authority), referer: text(view.first("referer", in: head)?.value),
            userAgent: text(view.first("user-agent", in: head)?.value))
    }
}
