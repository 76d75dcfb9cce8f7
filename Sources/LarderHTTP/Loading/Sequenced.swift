import Synchronization

/// A stored part of a body and an arriving one, in the order of their positions.
final class Sequenced: Sendable {
    private struct State {
        var stored: ResponseBody.Iterator
        var isFirstOver = false
    }

    private let reader: SpoolReader
    private let storedFirst: Bool
    private let state: Mutex<State>

    init(stored: ResponseBody.Iterator, reader: SpoolReader, storedFirst: Bool) {
        self.reader = reader
        self.storedFirst = storedFirst
        state = Mutex(State(stored: stored))
    }

    /// The next piece; nil at the end. For one reader at a time.
    func next() async throws -> [UInt8]? {
        if !state.withLock({ $0.isFirstOver }) {
            if let piece = try await storedFirst ? nextStored() : reader.next() { return piece }
            state.withLock { $0.isFirstOver = true }
        }
        return try await storedFirst ? reader.next() : nextStored()
    }

    private func nextStored() async throws -> [UInt8]? {
        var iterator = state.withLock { $0.stored }
        let piece = try await iterator.next()
        state.withLock { [iterator] in $0.stored = iterator }
        return piece
    }
}
