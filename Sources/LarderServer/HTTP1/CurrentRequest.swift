import HTTPTypes
import HTTPWire
import NIOCore

/// The request that a connection is reading or answering. Apart from the connection, so that an idle one has no room
/// for it.
final class CurrentRequest {
    /// For counters and log.
    var record: RequestRecord
    let method: HTTPRequest.Method
    let version: HTTPVersion
    /// Nil for a request without content.
    let content: RequestContent?
    /// The connection is closed after the answer.
    var closes: Bool
    /// When its last byte came, as far as it has come.
    var completed: NIODeadline
    /// The head of the final answer is written.
    private(set) var hasBegun = false
    /// The final answer is written.
    private(set) var isAnswered = false
    /// The final answer is sent in chunks.
    private(set) var isChunked = false

    init(
        _ record: RequestRecord, method: HTTPRequest.Method, version: HTTPVersion, closes: Bool,
        content: RequestContent?
    ) {
        self.record = record
        completed = record.start
        self.method = method
        self.version = version
        self.closes = closes
        self.content = content
    }

    /// Of a plain request whose answer is not written yet.
    convenience init(_ answer: PlainHits.Answer) {
        self.init(answer.record, method: .get, version: .http11, closes: answer.closes, content: nil)
    }

    /// Whether content is still to come.
    var isIncomplete: Bool { content?.isComplete == false }

    /// Whether the client waits for 100 before it sends content: it may or may not send it after another answer.
    var mayNeverBeComplete: Bool { isIncomplete && content?.owesContinue == true }

    /// RFC 9110 section 6.4.1.
    func answerHasContent(_ status: Int) -> Bool {
        method != .head && status >= 200 && status != 204 && status != 304
    }

    /// The head of the final answer is written.
    func begin(_ head: ResponseHeadWriter.Written) {
        closes = head.closes
        isChunked = head.isChunked
        hasBegun = true
        record.status = head.status
    }

    /// The final answer is written. Content that still comes is dropped.
    func end() {
        isAnswered = true
        content?.cutOff()
    }
}
