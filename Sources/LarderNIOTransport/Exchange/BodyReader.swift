import LarderHTTP
import Locks

/// The content of a response for its reader. Closes the connection if it is dropped before the content's end.
final class BodyReader: Sendable {
    private struct State {
        /// What came with the head.
        var first: [UInt8]
        var isOver: Bool
    }

    private let exchange: Exchange
    private let state: Mutex<State>

    init(_ exchange: Exchange, _ piece: Exchange.Piece) {
        self.exchange = exchange
        state = Mutex(State(first: piece.bytes, isOver: piece.isLast))
    }

    deinit {
        guard !state.withLock(\.isOver) else { return }
        exchange.connection.abort(
            exchange, TransportError(.cancelled, mayHaveBeenSeen: true, "the content was not read to its end"))
    }

    func next() async throws(TransportError) -> [UInt8]? {
        let (first, isOver) = state.withLock { state in
            defer { state.first = [] }
            return (state.first, state.isOver)
        }
        if !first.isEmpty { return first }
        if isOver { return nil }
        do throws(TransportError) {
            let piece = try await exchange.connection.nextPiece(exchange)
            if piece.isLast { state.withLock { $0.isOver = true } }
            return piece.bytes.isEmpty ? nil : piece.bytes
        } catch {
            state.withLock { $0.isOver = true }
            throw error
        }
    }
}
