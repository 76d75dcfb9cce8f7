import NIOCore

#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// The send queue of a socket.
enum SendQueue {
    /// Bytes that were written and not acknowledged; 0 where the system does not say.
    ///
    /// Linux: tcp(7), `SIOCOUTQ`. macOS: `SO_NWRITE`.
    static func unacknowledged(_ channel: any Channel) -> Int {
        let count = try? channel.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: CInt.self) { socket in
            var count: CInt = 0
            #if canImport(Darwin)
                var length = socklen_t(MemoryLayout<CInt>.size)
                return getsockopt(socket, SOL_SOCKET, SO_NWRITE, &count, &length) == 0 ? Int(count) : 0
            #else
                return ioctl(socket, UInt(TIOCOUTQ), &count) == 0 ? Int(count) : 0
            #endif
        }
        return max(0, count ?? 0)
    }

    /// Bytes that the channel holds because the system takes no more, those of files included.
    static func pending(_ channel: any Channel) -> Int {
        (try? channel.syncOptions?.getOption(.bufferedWritableBytes)) ?? 0
    }
}
