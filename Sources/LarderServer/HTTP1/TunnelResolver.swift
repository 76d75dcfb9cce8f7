import Dispatch
import NIOCore
import NIOPosix
import Locks

#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// Finds the addresses of a tunnel's host: getaddrinfo(3).
///
/// A look-up may take longer than the client stays, and than the gateway runs, and cannot be cancelled. NIO's own
/// resolver tells the event loop in any case; this one does not once ``cancelQueries()`` was called on it.
final class TunnelResolver: Resolver, Sendable {
    typealias LookUp = @Sendable (_ host: String, _ port: Int, _ family: CInt) -> Result<[SocketAddress], any Error>

    /// No address, as getaddrinfo(3) says.
    struct Unknown: Error {
        let code: CInt
    }

    private let eventLoop: any EventLoop
    private let lookUp: LookUp
    private let v4: EventLoopPromise<[SocketAddress]>
    private let v6: EventLoopPromise<[SocketAddress]>
    private let isClosed = Mutex(false)

    init(_ eventLoop: any EventLoop, lookUp: @escaping LookUp = TunnelResolver.addresses) {
        self.eventLoop = eventLoop
        self.lookUp = lookUp
        v4 = eventLoop.makePromise()
        v6 = eventLoop.makePromise()
    }

    func initiateAQuery(host: String, port: Int) -> EventLoopFuture<[SocketAddress]> {
        query(v4, host, port, AF_INET)
    }

    func initiateAAAAQuery(host: String, port: Int) -> EventLoopFuture<[SocketAddress]> {
        query(v6, host, port, AF_INET6)
    }

    /// Ends both queries; on the event loop.
    func cancelQueries() {
        isClosed.withLock { $0 = true }
        v4.fail(CancellationError())
        v6.fail(CancellationError())
    }

    private func query(
        _ promise: EventLoopPromise<[SocketAddress]>, _ host: String, _ port: Int, _ family: CInt
    ) -> EventLoopFuture<[SocketAddress]> {
        // It blocks for as long as the name servers like.
        DispatchQueue.global().async {
            let result = self.lookUp(host, port, family)
            self.isClosed.withLock { isClosed in
                if !isClosed { self.eventLoop.execute { promise.completeWith(result) } }
            }
        }
        return promise.futureResult
    }

    private static func addresses(_ host: String, _ port: Int, _ family: CInt) -> Result<[SocketAddress], any Error> {
        var hints = addrinfo()
        hints.ai_family = family
        #if canImport(Glibc)
            hints.ai_socktype = CInt(SOCK_STREAM.rawValue)
        #else
            hints.ai_socktype = SOCK_STREAM
        #endif
        var first: UnsafeMutablePointer<addrinfo>?
        let code = getaddrinfo(host, String(port), &hints, &first)
        guard code == 0 else { return .failure(Unknown(code: code)) }
        defer { freeaddrinfo(first) }
        var found: [SocketAddress] = []
        var next = first
        while let info = next {
            // SAFETY: getaddrinfo(3) gives addresses of the family that was asked for, each as long as its family's
            // are.
            if let address = info.pointee.ai_addr {
                if family == AF_INET {
                    let address = UnsafeRawPointer(address).loadUnaligned(as: sockaddr_in.self)
                    found.append(SocketAddress(address, host: host))
                } else {
                    let address = UnsafeRawPointer(address).loadUnaligned(as: sockaddr_in6.self)
                    found.append(SocketAddress(address, host: host))
                }
            }
            next = info.pointee.ai_next
        }
        return .success(found)
    }
}
