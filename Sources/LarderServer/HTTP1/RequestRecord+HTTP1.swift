import HTTPWire
import NIOCore

/// Records of requests over HTTP/1. Texts are filled in only where there is a log for them.
extension RequestRecord {
    init(_ head: RequestHead, client: String, start: NIODeadline, isLogged: Bool) {
        self.init(
            start: start, client: client, method: "", methodIndex: 0, target: "",
            version: head.version == .http11 ? "HTTP/1.1" : "HTTP/1.0")
        let request = head.request
        methodIndex = request.method == .get ? 0 : ServerCounters.methodIndex(request.method.rawValue)
        guard isLogged else { return }
        method = request.method.rawValue
        host = request.authority ?? ""
        switch head.targetForm {
        case .origin, .asterisk: target = request.path ?? ""
        case .authority: target = request.authority ?? ""
        case .absolute: target = "\(request.scheme ?? "")://\(request.authority ?? "")\(request.path ?? "")"
        }
        referer = request.headerFields[.referer] ?? ""
        userAgent = request.headerFields[.userAgent] ?? ""
    }

    /// Of a plain request, of which only the bytes are known, and the view of them.
    init(
        plain head: UnsafeRawBufferPointer, _ view: RequestHeadView, client: String, start: NIODeadline, isLogged: Bool
    ) {
        self.init(start: start, client: client, method: "", methodIndex: 0, target: "", version: "HTTP/1.1")
        guard isLogged else { return }
        func text(_ range: Range<Int>?) -> String { range.map { String(decoding: head[$0], as: UTF8.self) } ?? "" }
        method = text(view.method)
        target = text(view.target)
        host = text(view.authority)
        referer = text(view.first("referer", in: head)?.value)
        userAgent = text(view.first("user-agent", in: head)?.value)
    }

    /// Of a request that cannot be read.
    init(unreadableFrom client: String, start: NIODeadline) {
        self.init(
            start: start, client: client, method: "-", methodIndex: ServerCounters.methods.count - 1, target: "-",
            version: "HTTP/1.1")
    }
}
