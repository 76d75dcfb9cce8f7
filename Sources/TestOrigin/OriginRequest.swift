import HTTPTypes

/// A request as the origin received it.
public struct OriginRequest: Sendable {
    /// The method, as sent.
    public internal(set) var method: String
    /// The request target, as sent: `/path?query`, or any other form.
    public internal(set) var target: String
    /// The minor version of HTTP/1.
    public internal(set) var minorVersion: Int
    /// All fields, including `Host` and connection fields, in the order received.
    public internal(set) var fields: HTTPFields
    /// The content with the chunked coding removed, up to ``TestOrigin/recordedBodyLimit`` bytes of it.
    public internal(set) var body: [UInt8] = []
    /// The length of the content.
    public internal(set) var bodyLength: Int64 = 0
    /// The trailer fields of a chunked request.
    public internal(set) var trailers: HTTPFields = [:]
    /// The head as received, with the empty line.
    public internal(set) var rawHead: [UInt8]
    /// The connection that it arrived on: 1 for the first that the origin accepted.
    public internal(set) var connection: Int
    /// Its place among all requests of the origin: 1 for the first.
    public internal(set) var order: Int
    /// Its place among the requests for the same path, without the query: 1 for the first.
    public internal(set) var count: Int
    /// True if the whole request has arrived.
    public internal(set) var isComplete = false

    /// The target without its query.
    public var path: String { String(target.prefix { $0 != "?" }) }

    /// The values of a field, joined by ", "; nil if there is none.
    public subscript(_ name: String) -> String? {
        HTTPField.Name(name).flatMap { fields[$0] }
    }

    /// The content as text; bytes that are not UTF-8 are replaced.
    public var text: String { String(decoding: body, as: UTF8.self) }
}
