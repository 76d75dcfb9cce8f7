import LarderSockets
import NIOCore

/// Hands the parts of a request to a channel, and counts those that the system has not taken. On the event loop only.
final class RequestWriter {
    /// What is handed to the channel at once, so that its progress can be seen.
    private static let sliceBytes = 64 << 10

    private let loop: any EventLoop
    private let onProgress: () -> Void
    private var pendingWrites = 0
    /// Nil where the channel has to see what is written.
    var socket: SocketWriter?

    /// - Parameter onProgress: called when the system has taken a part.
    init(_ loop: any EventLoop, onProgress: @escaping () -> Void) {
        self.loop = loop
        self.onProgress = onProgress
    }

    /// Whether the system has not taken everything.
    var isPending: Bool { pendingWrites > 0 }

    /// Sends the first bytes of a request: to the socket, where nothing is before them.
    func begin(
        _ bytes: [UInt8], to context: ChannelHandlerContext?,
        as part: (_ slice: ByteBuffer, _ isLast: Bool) -> NIOAny
    ) {
        let taken = isPending ? 0 : bytes.withUnsafeBytes { socket?.write($0) ?? 0 }
        guard taken < bytes.count else { return }
        write(bytes[taken...], to: context, as: part)
        context?.flush()
    }

    /// Writes bytes in slices, without a flush.
    /// - Parameters:
    ///   - waiter: resumed when the system has taken the last byte; with false if it will not.
    ///   - part: makes of a slice what the channel takes. Its second argument tells whether the slice is the last.
    func write(
        _ bytes: ArraySlice<UInt8>, to context: ChannelHandlerContext?,
        _ waiter: CheckedContinuation<Bool, Never>? = nil, as part: (_ slice: ByteBuffer, _ isLast: Bool) -> NIOAny
    ) {
        guard let context else {
            waiter?.resume(returning: false)
            return
        }
        var rest = bytes
        repeat {
            let slice = rest.prefix(Self.sliceBytes)
            rest = rest.dropFirst(slice.count)
            let promise = followed(rest.isEmpty ? waiter : nil)
            context.write(part(context.channel.allocator.buffer(bytes: slice), rest.isEmpty), promise: promise)
        } while !rest.isEmpty
    }

    private func followed(_ waiter: CheckedContinuation<Bool, Never>?) -> EventLoopPromise<Void> {
        pendingWrites += 1
        let promise = loop.makePromise(of: Void.self)
        promise.futureResult.assumeIsolated().whenComplete { result in
            self.pendingWrites -= 1
            var isTaken = false
            if case .success = result { isTaken = true }
            if isTaken { self.onProgress() }
            waiter?.resume(returning: isTaken)
        }
        return promise
    }
}
