/// The access log: a line for each request.
public struct AccessLogConfiguration: Sendable, Hashable {
    /// The form of a line.
    public enum Format: String, Sendable, Hashable, CaseIterable {
        /// The common log format of NCSA and Apache's httpd: client, time, request line, status, bytes of content.
        case common
        /// A JSON object with the same, host, referrer, user agent, duration, and where the answer came from.
        case json
    }

    /// The form of a line. Default: common.
    public var format: Format
    /// The file that lines are appended to; nil writes to the standard output. Default: nil.
    public var path: String?

    /// Describes a log. Each parameter sets the property of its name, and has the default that the property states.
    public init(format: Format = .common, path: String? = nil) {
        self.format = format
        self.path = path
    }
}
