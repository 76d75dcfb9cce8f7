import AsyncHTTPClient
import NIOCore
import Locks

/// A content that a closure writes, as a sequence. The closure's next piece is asked for when the last was taken.
struct WrittenBody: AsyncSequence, Sendable {
    typealias Element = ByteBuffer

    private let body: HTTPClient.Body
    private let loop: any EventLoop

    /// - Parameter loop: where the closure is called.
    init(_ body: HTTPClient.Body, on loop: any EventLoop) {
        self.body = body
        self.loop = loop
    }

    func makeAsyncIterator() -> Iterator {
        let pieces = Pieces(loop)
        let body = body
        loop.flatSubmit { body.stream(HTTPClient.Body.StreamWriter { pieces.write($0) }) }
            .whenComplete { pieces.finish($0) }
        return Iterator(reading: Reading(pieces))
    }

    struct Iterator: AsyncIteratorProtocol {
        fileprivate let reading: Reading

        mutating func next() async throws -> ByteBuffer? { try await reading.pieces.next() }
    }

    /// Tells the closure when the request is over: what it writes then fails.
    fileprivate final class Reading: Sendable {
        let pieces: Pieces
        init(_ pieces: Pieces) { self.pieces = pieces }
        deinit { pieces.close() }
    }

    /// What was written and not read yet.
    fileprivate final class Pieces: Sendable {
        private struct State {
            var waiting: [(piece: ByteBuffer, taken: EventLoopPromise<Void>)] = []
            var reader: CheckedContinuation<Void, Never>?
            var ending: Result<Void, any Error>?
            var isClosed = false
        }

        private let loop: any EventLoop
        private let state = Mutex(State())

        init(_ loop: any EventLoop) { self.loop = loop }

        func write(_ data: IOData) -> EventLoopFuture<Void> {
            guard case .byteBuffer(let piece) = data else {
                return loop.makeFailedFuture(ChannelError.operationUnsupported)
            }
            let taken = loop.makePromise(of: Void.self)
            let (isClosed, reader) = state.withLock { state in
                if state.isClosed { return (true, nil as CheckedContinuation<Void, Never>?) }
                state.waiting.append((piece, taken))
                defer { state.reader = nil }
                return (false, state.reader)
            }
            if isClosed { taken.fail(HTTPClientError.cancelled) }
            reader?.resume()
            return taken.futureResult
        }

        func finish(_ ending: Result<Void, any Error>) {
            let reader = state.withLock { state in
                state.ending = ending
                defer { state.reader = nil }
                return state.reader
            }
            reader?.resume()
        }

        func close() {
            let waiting = state.withLock { state in
                state.isClosed = true
                defer { state.waiting = [] }
                return state.waiting
            }
            for write in waiting { write.taken.fail(HTTPClientError.cancelled) }
        }

        func next() async throws -> ByteBuffer? {
            while true {
                let (write, ending) = state.withLock { state in
                    (state.waiting.isEmpty ? nil : state.waiting.removeFirst(), state.ending)
                }
                if let write {
                    write.taken.succeed()
                    if write.piece.readableBytes > 0 { return write.piece }
                    continue
                }
                if let ending {
                    try ending.get()
                    return nil
                }
                await wait()
                try Task.checkCancellation()
            }
        }

        private func wait() async {
            await withTaskCancellationHandler {
                await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
                    let isReady = state.withLock { state in
                        if !state.waiting.isEmpty || state.ending != nil || Task.isCancelled { return true }
                        state.reader = continuation
                        return false
                    }
                    if isReady { continuation.resume() }
                }
            } onCancel: {
                let reader = state.withLock { state in
                    defer { state.reader = nil }
                    return state.reader
                }
                reader?.resume()
            }
        }
    }
}
