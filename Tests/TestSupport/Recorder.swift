import Logging

/// Writes messages to a closure.
public struct Recorder: LogHandler {
    private let write: @Sendable (String) -> Void
    public var metadata: Logger.Metadata = [:]
    public var logLevel = Logger.Level.info

    public init(_ write: @escaping @Sendable (String) -> Void) { self.write = write }

    public subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    public func log(event: LogEvent) { write("\(event.message)") }
}
