import NIOCore

#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// Writes to the socket of a channel past the channel: for bytes that the system takes at once, a write through it
/// costs a buffer to keep, and a place in its queue. Only while the channel holds nothing that was written before. On
/// the channel's event loop only.
package struct SocketWriter {
    /// Kept, because the cast asks the runtime. It checks with each call that the socket is open.
    private let transport: any NIOTransportAccessibleChannelCore<NIOBSDSocket.Handle>

    /// Nil for a channel without a socket.
    package init?(_ channel: any Channel) {
        guard let transport = channel._channelCore as? any NIOTransportAccessibleChannelCore<NIOBSDSocket.Handle> else {
            return nil
        }
        self.transport = transport
    }

    /// Writes what the system takes at once. `send(2)`.
    /// - Returns: how many bytes; 0 where it takes none, or the socket has failed: then a write through the channel
    ///   fails, too.
    package func write(_ bytes: UnsafeRawBufferPointer) -> Int {
        let count = try? transport.withUnsafeTransport { send($0, bytes.baseAddress, bytes.count, Self.flags) }
        return max(0, count ?? 0)
    }

    /// Writes what the system takes at once of two pieces, one behind the other. `sendmsg(2)`.
    /// - Returns: how many bytes of both, as above.
    package func write(_ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer) -> Int {
        guard !first.isEmpty else { return write(second) }
        return withUnsafeTemporaryAllocation(of: iovec.self, capacity: 2) { pieces in
            pieces.initializeElement(at: 0, to: Self.piece(first))
            pieces.initializeElement(at: 1, to: Self.piece(second))
            var message = msghdr()
            message.msg_iov = pieces.baseAddress
            message.msg_iovlen = 2
            let count = try? transport.withUnsafeTransport { sendmsg($0, &message, Self.flags) }
            return max(0, count ?? 0)
        }
    }

    private static func piece(_ bytes: UnsafeRawBufferPointer) -> iovec {
        iovec(iov_base: UnsafeMutableRawPointer(mutating: bytes.baseAddress), iov_len: bytes.count)
    }

    #if canImport(Darwin)
        // SwiftNIO sets F_SETNOSIGPIPE (fcntl(2)).
        private static let flags: CInt = 0
    #else
        private static let flags = CInt(MSG_NOSIGNAL)
    #endif
}
