import LarderHTTP
import Locks

/// The content of a request between the connection that brings it and the load that sends it on: a short queue, which
/// holds the client back when it is full.
package final class BodyInlet: Sendable {
    /// Why there is no more content.
    package struct Cut: Error {}

    /// What may wait. More than a connection's read brings at once, so that the client is not stopped for each piece.
    private static let capacity = 256 << 10

    private struct State {
        var pieces: [[UInt8]] = []
        var bytes = 0
        var ending: Result<Void, any Error>?
        var waiter: CheckedContinuation<[UInt8]?, any Error>?
        var hasBeenPulled = false

        mutating func add(_ bytes: [UInt8]) {
            self.bytes += bytes.count
            pieces.appendPiece(bytes)
        }
    }

    private let state = Mutex(State())
    private let memory: MemoryBudget?
    private let onDemand: @Sendable () -> Void

    /// - Parameters:
    ///   - memory: counts what waits here.
    ///   - onDemand: called when content is asked for that is not there; from any thread, with a lock held, and
    ///     never once ``finish()`` or ``fail()`` has returned.
    init(memory: MemoryBudget? = nil, onDemand: @escaping @Sendable () -> Void) {
        self.memory = memory
        self.onDemand = onDemand
    }

    deinit { state.withLock { memory?.add(-$0.bytes) } }

    /// The content as a load wants it.
    func body(length: Int64?) -> RequestBody {
        RequestBody(length: length) { try await self.next() }
    }

    /// Whether there is room.
    var takesMore: Bool { state.withLock { $0.bytes < Self.capacity && $0.ending == nil } }

    /// Bytes that wait here.
    var heldBytes: Int { state.withLock { $0.bytes } }

    func offer(_ bytes: [UInt8]) {
        let waiter = state.withLock { state -> CheckedContinuation<[UInt8]?, any Error>? in
            guard state.ending == nil else { return nil }
            if let waiter = state.waiter {
                state.waiter = nil
                return waiter
            }
            state.add(bytes)
            memory?.add(bytes.count)
            return nil
        }
        waiter?.resume(returning: bytes)
    }

    /// The content is complete.
    func finish() { end(.success(())) }

    /// The content ends early.
    func fail() { end(.failure(Cut())) }

    private func end(_ ending: Result<Void, any Error>) {
        let waiter = state.withLock { state in
            guard state.ending == nil else { return nil as CheckedContinuation<[UInt8]?, any Error>? }
            state.ending = ending
            if case .failure = ending {
                memory?.add(-state.bytes)
                (state.pieces, state.bytes) = ([], 0)
            }
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume(with: ending.map { nil })
    }

    private func next() async throws -> [UInt8]? {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let outcome = state.withLock { state -> Result<[UInt8]?, any Error>? in
                    let isFirst = !state.hasBeenPulled
                    state.hasBeenPulled = true
                    if !state.pieces.isEmpty {
                        let wasFull = state.bytes >= Self.capacity
                        let piece = state.pieces.removeFirst()
                        state.bytes -= piece.count
                        memory?.add(-piece.count)
                        if isFirst || wasFull, state.ending == nil { onDemand() }
                        return .success(piece)
                    }
                    if let ending = state.ending { return ending.map { nil } }
                    if Task.isCancelled { return .failure(CancellationError()) }
                    state.waiter = continuation
                    onDemand()
                    return nil
                }
                if let outcome { continuation.resume(with: outcome) }
            }
        } onCancel: {
            let waiter = state.withLock { state in
                defer { state.waiter = nil }
                return state.waiter
            }
            waiter?.resume(throwing: CancellationError())
        }
    }
}

extension [[UInt8]] {
    /// Adds a piece. Small ones are joined: each takes more memory than its bytes, and a client chooses their sizes.
    mutating func appendPiece(_ bytes: [UInt8]) {
        if let last = indices.last, self[last].count + bytes.count <= 16 << 10 {
            self[last] += bytes
        } else {
            append(bytes)
        }
    }
}
