/// The origin's answer to one request: a value that is built by chained calls, and may be as invalid as a test needs.
///
/// ```swift
/// .ok("hello").header("Cache-Control", "max-age=60").chunked()
/// .status(206, "ell").header("Content-Range", "bytes 1-3/5")
/// .ok(GeneratedBytes(count: 4 << 30)).truncated(after: 1 << 20)
/// ```
///
/// By default `Content-Length` has the content's length, and the connection stays open. No `Date` is added.
public struct OriginAnswer: Sendable {
    /// A field line, which may contain anything.
    public struct Field: Sendable, Hashable {
        /// The name.
        public var name: String
        /// The value.
        public var value: String

        /// Makes a field line.
        /// - Parameters:
        ///   - name: any text; it is sent as it is.
        ///   - value: any text; it is sent as it is.
        public init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    /// The way in which the end of the content is marked.
    public enum Framing: Sendable, Hashable {
        /// `Content-Length` with the content's length; an explicit `Content-Length` replaces it.
        case length
        /// `Transfer-Encoding: chunked`, one chunk for each piece.
        case chunked
        /// The end of the connection.
        case untilClose
    }

    /// The state of the connection after the last byte.
    public enum Ending: Sendable, Hashable {
        /// The connection stays open, unless the request asks for its end.
        case keepAlive
        /// The connection is closed (FIN).
        case close
        /// The connection is reset (RST).
        case reset
        /// Nothing: nothing more is read or sent until the client leaves.
        case silence
    }

    /// A step of the content.
    enum Piece: Sendable {
        case bytes([UInt8])
        case generated(GeneratedBytes)
        case gate(Gate)
    }

    /// An interim answer.
    struct Interim: Sendable {
        var status: Int
        var reason: String
        var fields: [Field]
        var gate: Gate?
    }

    /// The status code; 100 to 999.
    public var status: Int
    /// The reason phrase.
    public var reason: String
    /// The field lines, in order.
    public var fields: [Field] = []
    /// The way in which the end of the content is marked.
    public var framing: Framing = .length
    /// The state of the connection after the last byte.
    public var ending: Ending = .keepAlive

    var minorVersion = 1
    var pieces: [Piece] = []
    var trailers: [Field] = []
    var interim: [Interim] = []
    var gateBeforeHead: Gate?
    /// Content is cut after this many bytes, and the ending follows.
    var limit: Int64?
    /// Sent in place of the whole answer.
    var raw: [UInt8]?
    /// Sent after the proper end of the answer.
    var garbage: [UInt8] = []
    /// The content is sent even where the response has none: to HEAD, with 204, with 304.
    var forcesContent = false

    init(status: Int, reason: String) {
        self.status = status
        self.reason = reason
    }

    /// The number of bytes that ``Framing/length`` declares.
    var contentLength: Int64 {
        pieces.reduce(0) { sum, piece in
            switch piece {
            case .bytes(let bytes): sum + Int64(bytes.count)
            case .generated(let bytes): sum + bytes.count
            case .gate: sum
            }
        }
    }
}
