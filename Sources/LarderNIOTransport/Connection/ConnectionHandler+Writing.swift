import HTTPWire
import LarderHTTP
import NIOCore

extension ConnectionHandler {
    /// What is handed to the channel at once, so that its progress can be seen.
    private static let sliceBytes = 64 << 10

    /// Content of the request, from its source.
    func writeContent(_ bytes: [UInt8], _ exchange: Exchange, _ waiter: CheckedContinuation<Bool, Never>) {
        // A final head says that the server has read all it wants.
        guard self.exchange === exchange, exchange.decoder == nil, !isClosed else {
            return waiter.resume(returning: false)
        }
        exchange.sent += Int64(bytes.count)
        if exchange.message.stream?.length == exchange.sent { exchange.isRequestComplete = true }
        if exchange.message.isChunked {
            var start: [UInt8] = []
            MessageWriter.appendChunkStart(count: bytes.count, to: &start)
            enqueue(start[...])
            enqueue(bytes[...])
            enqueue(MessageWriter.chunkEnd[...], waiter)
        } else {
            enqueue(bytes[...], waiter)
        }
        flush()
    }

    /// All the content has been sent.
    func endRequest(_ exchange: Exchange) {
        guard self.exchange === exchange, exchange.decoder == nil, !isClosed else { return }
        exchange.isRequestComplete = true
        if exchange.message.isChunked {
            enqueue(MessageWriter.lastChunk[...])
            flush()
        } else {
            setTimeLimit()
        }
    }

    func write(_ bytes: [UInt8]) {
        enqueue(bytes[...])
        flush()
    }

    private func flush() {
        context?.flush()
        setTimeLimit()
    }

    /// - Parameter waiter: resumed when the system has taken the last byte; with false if it will not.
    private func enqueue(_ bytes: ArraySlice<UInt8>, _ waiter: CheckedContinuation<Bool, Never>? = nil) {
        guard let context else {
            waiter?.resume(returning: false)
            return
        }
        var rest = bytes
        while !rest.isEmpty {
            let slice = rest.prefix(Self.sliceBytes)
            rest = rest.dropFirst(slice.count)
            let promise = context.eventLoop.makePromise(of: Void.self)
            let isLast = rest.isEmpty
            follow(promise, isLast ? waiter : nil)
            context.write(wrapOutboundOut(context.channel.allocator.buffer(bytes: slice)), promise: promise)
        }
    }
}
