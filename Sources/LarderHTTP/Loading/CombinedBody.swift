import Locks

/// Stored parts of a body, an arriving one, and those that are still to be fetched, in the order of their positions.
final class CombinedBody: Sendable {
    enum Step: Sendable {
        case stored([ResponseBody.Segment])
        case arriving(ExactBody)
        /// Fetched when its turn has come.
        case missing(@Sendable () async throws -> ResponseBody)
    }

    private struct State {
        var steps: [Step]
        /// Where the reading of the first step is, unless it is arriving.
        var iterator: ResponseBody.Iterator?
    }

    private let state: Mutex<State>

    init(_ steps: [Step]) { state = Mutex(State(steps: steps)) }

    /// The next piece; nil at the end. For one reader at a time.
    func next() async throws -> [UInt8]? {
        while let step = state.withLock({ $0.steps.first }) {
            if let piece = try await next(of: step) { return piece }
            state.withLock { state in
                state.steps.removeFirst()
                state.iterator = nil
            }
        }
        return nil
    }

    private func next(of step: Step) async throws -> [UInt8]? {
        var iterator: ResponseBody.Iterator
        switch step {
        case .arriving(let body): return try await body.next()
        case .stored(let segments): iterator = iterating ?? ResponseBody(segments).makeAsyncIterator()
        case .missing(let fetch):
            if let iterating {
                iterator = iterating
            } else {
                iterator = try await fetch().makeAsyncIterator()
            }
        }
        let piece = try await iterator.next()
        state.withLock { [iterator] in $0.iterator = iterator }
        return piece
    }

    private var iterating: ResponseBody.Iterator? { state.withLock { $0.iterator } }
}
