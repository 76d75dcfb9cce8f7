import NIOCore
import NIOPosix
import NIOSSL

extension Channel {
    /// Closes at once: past TLS, which would want to say goodbye to a client that may not read, and with a reset, so
    /// that the kernel does not keep what was not taken. On its event loop only.
    func reset() {
        let close = {
            let pipeline = self.pipeline.syncOperations
            if let tls = try? pipeline.context(handlerType: NIOSSLServerHandler.self) {
                tls.close(promise: nil)
            } else {
                self.close(promise: nil)
            }
        }
        guard let isSet = resetWhenClosed() else { return close() }
        isSet.assumeIsolated().whenComplete { _ in close() }
    }

    /// Makes the system reset the connection when it is closed: socket(7), `SO_LINGER` with a time of 0. Nil for a
    /// channel without a socket.
    func resetWhenClosed() -> EventLoopFuture<Void>? {
        (self as? any SocketOptionProvider)?.setSoLinger(linger(l_onoff: 1, l_linger: 0))
    }
}
