import Locks

/// The content of a request.
public struct RequestBody: Sendable {
    /// The exact length; nil for a body that is sent chunked.
    public let length: Int64?
    /// True if it can be read from the start a second time, so that a request may be tried again.
    public let isReplayable: Bool
    /// All of it, where it is in memory.
    let bytes: [UInt8]?
    private let begin: @Sendable () -> (@Sendable () async throws -> [UInt8]?)

    /// A body in memory, which can be read again.
    ///
    /// - Parameter bytes: all of it.
    public init(_ bytes: [UInt8]) {
        length = Int64(bytes.count)
        isReplayable = true
        self.bytes = bytes
        begin = {
            let once = Once(bytes)
            return { once.take() }
        }
    }

    /// A body that arrives in pieces and can be read once.
    ///
    /// - Parameters:
    ///   - length: the exact length in bytes, if it is known. More or fewer bytes end the request with
    ///     ``TransportError/Code/requestBodyFailed``.
    ///   - pull: the next piece; nil at the end. Never called from two tasks at the same time. An error that it throws
    ///     also ends the request.
    public init(length: Int64?, pull: @escaping @Sendable () async throws -> [UInt8]?) {
        self.length = length
        isReplayable = false
        bytes = nil
        begin = { pull }
    }

    /// A stream of which something was read already.
    init(length: Int64?, first: [UInt8], then pull: @escaping @Sendable () async throws -> [UInt8]?) {
        let first = Once(first)
        self.init(length: length) { if let piece = first.take() { piece } else { try await pull() } }
    }

    /// Starts reading: for transports.
    ///
    /// - Returns: a function that returns the next piece with each call, nil at the end, and throws the errors of the
    ///   source.
    public func makePull() -> @Sendable () async throws -> [UInt8]? { begin() }

    private final class Once: Sendable {
        private let bytes: Mutex<[UInt8]?>
        init(_ bytes: [UInt8]) { self.bytes = Mutex(bytes.isEmpty ? nil : bytes) }
        func take() -> [UInt8]? {
            bytes.withLock { held in
                defer { held = nil }
                return held
            }
        }
    }
}
