import Locks

/// The content of a response while it arrives: pieces of one byte or more, once, for one reader.
///
/// The transport reads from the connection no faster than the pieces are taken. A body that is dropped before its end
/// closes the connection.
public struct TransportBody: AsyncSequence, Sendable {
    /// A piece.
    public typealias Element = [UInt8]

    /// The exact length, if the head's framing gives it; nil if only the end of the message shows it.
    public let length: Int64?
    /// All of it, where it came with the head.
    package let whole: [UInt8]?
    private let pull: @Sendable () async throws(TransportError) -> [UInt8]?

    /// Makes a body.
    /// - Parameters:
    ///   - length: the length, if it is known.
    ///   - pull: the next piece, nil at the proper end of the message (RFC 9112 section 8). Throws
    ///     ``TransportError/Code/incompleteResponse`` if the message ends early. Not called again after nil or an
    ///     error, and never from two tasks at the same time.
    public init(length: Int64? = nil, pull: @escaping @Sendable () async throws(TransportError) -> [UInt8]?) {
        self.length = length
        self.pull = pull
        whole = nil
    }

    /// A body that came with the head.
    package init(whole: [UInt8]) {
        length = Int64(whole.count)
        self.whole = whole
        let rest = Mutex(whole)
        pull = { () throws(TransportError) in
            let piece = rest.withLock { rest in
                defer { rest = [] }
                return rest
            }
            return piece.isEmpty ? nil : piece
        }
    }

    /// A body of no bytes.
    public static let empty = TransportBody(length: 0) { () throws(TransportError) in nil }

    /// The next piece. One task at a time calls it.
    ///
    /// - Returns: a piece of any length; nil at the proper end of the message.
    /// - Throws: ``TransportError``, ``TransportError/Code/incompleteResponse`` if the message ends early.
    public func next() async throws(TransportError) -> [UInt8]? { try await pull() }

    /// Takes pieces as ``next()`` does.
    public struct Iterator: AsyncIteratorProtocol {
        let body: TransportBody
        /// The next piece.
        ///
        /// - Returns: a piece of any length; nil at the end.
        /// - Throws: ``TransportError``.
        public mutating func next() async throws -> [UInt8]? { try await body.next() }
    }

    /// Starts with the next piece that has not been taken.
    ///
    /// - Returns: an iterator; one task at a time uses it.
    public func makeAsyncIterator() -> Iterator { Iterator(body: self) }
}
