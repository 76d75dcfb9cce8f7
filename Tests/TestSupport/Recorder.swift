import Logging

/// Writes messages to a closure.
package struct Recorder: LogHandler {
    private let write: @Sendable (String) -> Void
    package var metadata: Logger.Metadata = [:]
    package var logLevel = Logger.Level.info

    package init(_ write: @escaping @Sendable (String) -> Void) { self.write = write }

    package subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    package func log(event: LogEvent) { write("\(event.message)") }
}
