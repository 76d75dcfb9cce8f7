import HTTPTypes
import Hummingbird
import LarderHTTP
import NIOCore
import Locks

/// A content that a handler writes, for a cache that reads: each piece waits until the cache has taken it.
final class HandlerBody: Sendable {
    private struct State {
        var piece: [UInt8]?
        var writer: CheckedContinuation<Void, any Error>?
        var reader: CheckedContinuation<Void, Never>?
        var count: Int64 = 0
        var isFinished = false
        var ending: Result<Void, any Error>?
        var isClosed = false
    }

    /// Why a content is not whole.
    struct Incomplete: Error, CustomStringConvertible { let description: String }

    /// The longest content that is written before its head is passed on, in bytes.
    private static let wholeBytes = 16 << 10

    private let body: Hummingbird.ResponseBody
    private let length: Int64?
    private let state = Mutex(State())

    init(_ body: Hummingbird.ResponseBody) {
        self.body = body
        length = body.contentLength.map { Int64($0) }
    }

    /// Begins to write.
    ///
    /// - Returns: what the cache reads.
    /// - Throws: what the handler throws while it writes a short content.
    func start() async throws -> TransportBody {
        if let length, length <= Self.wholeBytes {
            let pieces = Collected()
            try await body.write(CollectingWriter(pieces: pieces))
            let bytes = pieces.bytes.withLock { $0 }
            try check(Int64(bytes.count), isFinished: pieces.isFinished.withLock { $0 })
            let taken = Taken(bytes.isEmpty ? nil : bytes)
            return TransportBody(length: length) { () throws(TransportError) in taken.take() }
        }
        let reading = Reading(self, Task { await self.write() })
        return TransportBody(length: length) { () throws(TransportError) in try await reading.body.next() }
    }

    /// Ends the writing when no reader is left.
    private final class Reading: Sendable {
        let body: HandlerBody
        private let task: Task<Void, Never>

        init(_ body: HandlerBody, _ task: Task<Void, Never>) {
            self.body = body
            self.task = task
        }

        deinit {
            task.cancel()
            body.close()
        }
    }

    private func check(_ count: Int64, isFinished: Bool) throws {
        guard isFinished else { throw Incomplete(description: "the handler did not call finish") }
        if let length, count != length {
            throw Incomplete(description: "the handler declared \(length) bytes and wrote \(count)")
        }
    }

    // MARK: The handler's side

    private func write() async {
        let result: Result<Void, any Error>
        do {
            try await body.write(PieceWriter(body: self))
            let (count, isFinished) = state.withLock { ($0.count, $0.isFinished) }
            try check(count, isFinished: isFinished)
            result = .success(())
        } catch {
            result = .failure(error)
        }
        let reader = state.withLock { state in
            state.ending = result
            defer { state.reader = nil }
            return state.reader
        }
        reader?.resume()
    }

    fileprivate func finish() { state.withLock { $0.isFinished = true } }

    /// Hands a piece over, and waits until it is taken.
    fileprivate func put(_ piece: [UInt8]) async throws {
        if piece.isEmpty { return }
        let count = state.withLock { $0.count } + Int64(piece.count)
        // More than the head says must not reach the client: it would be taken for the next response.
        if let length, count > length {
            throw Incomplete(description: "the handler declared \(length) bytes and wrote \(count)")
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
                let (reader, isClosed) = state.withLock { state in
                    if state.isClosed || Task.isCancelled {
                        return (nil as CheckedContinuation<Void, Never>?, true)
                    }
                    state.piece = piece
                    state.count += Int64(piece.count)
                    state.writer = continuation
                    defer { state.reader = nil }
                    return (state.reader, false)
                }
                if isClosed { continuation.resume(throwing: CancellationError()) }
                reader?.resume()
            }
        } onCancel: {
            close()
        }
    }

    private func close() {
        let (writer, reader) = state.withLock { state in
            state.isClosed = true
            defer { (state.writer, state.reader) = (nil, nil) }
            return (state.writer, state.reader)
        }
        writer?.resume(throwing: CancellationError())
        reader?.resume()
    }

    // MARK: The cache's side

    fileprivate func next() async throws(TransportError) -> [UInt8]? {
        while true {
            let (piece, writer, ending) = state.withLock { state in
                defer { (state.piece, state.writer) = (nil, nil) }
                return (state.piece, state.writer, state.ending)
            }
            writer?.resume()
            if let piece { return piece }
            switch ending {
            case .success: return nil
            case .failure(let error):
                throw TransportError(
                    .incompleteResponse, mayHaveBeenSeen: true, "the handler broke off: \(error)", cause: error)
            case nil: await wait()
            }
            if Task.isCancelled {
                throw TransportError(.cancelled, mayHaveBeenSeen: true, "the response is no longer wanted")
            }
        }
    }

    private func wait() async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
                let isReady = state.withLock { state in
                    if state.piece != nil || state.ending != nil || Task.isCancelled { return true }
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

/// Passes on what a handler writes. Trailer fields are left out: a cache keeps none.
private struct PieceWriter: ResponseBodyWriter {
    let body: HandlerBody

    mutating func write(_ buffer: ByteBuffer) async throws { try await body.put(Array(buffer.readableBytesView)) }

    consuming func finish(_ trailingHeaders: HTTPFields?) async throws { body.finish() }
}

/// What a handler wrote of a short content.
private final class Collected: Sendable {
    let bytes = Mutex<[UInt8]>([])
    let isFinished = Mutex(false)
}

private struct CollectingWriter: ResponseBodyWriter {
    let pieces: Collected

    mutating func write(_ buffer: ByteBuffer) async throws {
        pieces.bytes.withLock { $0 += buffer.readableBytesView }
    }

    consuming func finish(_ trailingHeaders: HTTPFields?) async throws { pieces.isFinished.withLock { $0 = true } }
}

/// Bytes that are given once.
private final class Taken: Sendable {
    private let bytes: Mutex<[UInt8]?>
    init(_ bytes: [UInt8]?) { self.bytes = Mutex(bytes) }

    func take() -> [UInt8]? {
        bytes.withLock { bytes in
            defer { bytes = nil }
            return bytes
        }
    }
}
