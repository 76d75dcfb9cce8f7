import Locks

/// A body whose place is between others, so that its length has to be exact. The message of a 206 may have fewer or
/// more bytes than its `Content-Range` says, and may end properly where its connection broke off (RFC 9112 section
/// 6.3).
final class ExactBody: Sendable {
    private struct State {
        var iterator: ResponseBody.Iterator
        var left: Int64
    }

    private let state: Mutex<State>
    private let url: String

    /// - Parameters:
    ///   - body: read by nothing else.
    ///   - count: the bytes that it has to have.
    init(_ body: ResponseBody, count: Int, url: String) {
        state = Mutex(State(iterator: body.makeAsyncIterator(), left: Int64(count)))
        self.url = url
    }

    /// The next piece; nil at the end. For one reader at a time.
    /// - Throws: ``FetchError/Code/origin`` in place of a piece that is too long, or of an end that comes too early.
    func next() async throws -> [UInt8]? {
        var iterator = state.withLock { $0.iterator }
        let piece = try await iterator.next()
        let left = state.withLock { [iterator] state in
            state.iterator = iterator
            state.left -= Int64(piece?.count ?? 0)
            return state.left
        }
        if piece == nil ? left > 0 : left < 0 {
            let difference = left > 0 ? "fewer" : "more"
            throw FetchError(.origin, url: url, "the origin sent \(difference) bytes than Content-Range says")
        }
        return piece
    }
}

extension TransportBody {
    /// The same bytes, of which there may be no more than these: with more it breaks off.
    func limited(to count: Int64) -> TransportBody {
        let left = Mutex(count)
        return TransportBody(length: length) { () throws(TransportError) in
            guard let piece = try await self.next() else { return nil }
            let isWithin = left.withLock { left in
                left -= Int64(piece.count)
                return left >= 0
            }
            guard isWithin else {
                throw TransportError(
                    .malformedResponse, mayHaveBeenSeen: true,
                    "the origin sent more bytes than Content-Range says")
            }
            return piece
        }
    }
}
