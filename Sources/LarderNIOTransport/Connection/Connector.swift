import HTTPWire
import LarderHTTP
import NIOCore
import NIOPosix
import NIOSSL

/// Opens connections.
struct Connector: Sendable {
    private let pool: ConnectionPool
    private let limits: HeadLimits
    private let idleTimeout: Duration
    private let tls: TLSSettings
    private let http2: Bool
    private let proxy: NIOTransport.Proxy?

    init(_ configuration: NIOTransport.Configuration, _ pool: ConnectionPool) {
        self.pool = pool
        limits = HeadLimits(
            headBytes: configuration.maximumHeadBytes, fields: max(256, configuration.maximumHeadBytes / 256))
        idleTimeout = configuration.idleTimeout
        tls = TLSSettings(configuration.tls, http2: configuration.http2)
        http2 = configuration.http2
        proxy = configuration.proxy
    }

    /// Opens a connection in a place of the pool, which gets it back if this fails.
    func connect(
        to endpoint: NIOTransport.Endpoint, on loop: any EventLoop, _ deadline: NIODeadline
    ) async throws(TransportError) -> ConnectionOpening.Outcome {
        let attempt = ConnectionAttempt()
        return try await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                guard attempt.begin({ continuation.resume(returning: $0) }) else { return pool.giveUpPlace(endpoint) }
                do {
                    // Not on the event loop: trust roots are read the first time.
                    let context = endpoint.isTLS ? try tls.context() : nil
                    // On the event loop, which then tells of the connection before it does anything else. A thread that
                    // asks for the result later may find the channel closed, and its handlers removed with the reason.
                    loop.execute { open(endpoint, context, loop, deadline, attempt) }
                } catch {
                    pool.giveUpPlace(endpoint)
                    attempt.end(.failure(.cannotConnect(endpoint, error)))
                }
            }
        } onCancel: {
            attempt.end(.failure(.cancelled(endpoint, mayHaveBeenSeen: false)))
        }.get()
    }

    /// The same without a task, on the event loop; not for TLS, which may have to read trust roots.
    /// - Parameter receive: called on the event loop.
    func connect(
        to endpoint: NIOTransport.Endpoint, on loop: any EventLoop, _ deadline: NIODeadline,
        _ receive: @escaping @Sendable (ConnectionAttempt.Outcome) -> Void
    ) -> ConnectionAttempt {
        let attempt = ConnectionAttempt()
        _ = attempt.begin(receive)
        open(endpoint, nil, loop, deadline, attempt)
        return attempt
    }

    private func open(
        _ endpoint: NIOTransport.Endpoint, _ context: NIOSSLContext?, _ loop: any EventLoop, _ deadline: NIODeadline,
        _ attempt: ConnectionAttempt
    ) {
        let timer = loop.scheduleTask(deadline: deadline) {
            attempt.end(
                .failure(
                    TransportError(
                        .timedOut, mayHaveBeenSeen: false, endpoint: "\(endpoint)",
                        "\(endpoint) did not accept a connection in time")))
        }
        let proxy = proxy.flatMap { $0.serves(endpoint) ? $0 : nil }
        let hop = proxy?.endpoint ?? endpoint
        // Where the name is looked up, where IPv6 and IPv4 race (RFC 8305) and where TLS starts.
        bootstrap(endpoint, through: proxy, context, loop, deadline).connect(host: hop.host, port: hop.port)
            .whenComplete {
                result in
                do {
                    let channel = try result.get()
                    attempt.note(channel)
                    // Not there any more if the channel closed between connecting and now.
                    let opening = try channel.pipeline.syncOperations.handler(type: OpeningHandler.self).opening
                    opening.result.whenComplete { result in
                        timer.cancel()
                        settle(result, of: channel, endpoint, attempt)
                    }
                } catch {
                    timer.cancel()
                    if case .success(let channel) = result { channel.close(promise: nil) }
                    pool.giveUpPlace(endpoint)
                    attempt.end(.failure(.cannotConnect(hop, error)))
                }
            }
    }

    /// Tells the pool and the waiting task what happened to a connection.
    private func settle(
        _ result: Result<ConnectionOpening.Outcome, any Error>, of channel: any Channel,
        _ endpoint: NIOTransport.Endpoint,
        _ attempt: ConnectionAttempt
    ) {
        let outcome = result.mapError { TransportError.cannotConnect(endpoint, $0) }
        // The pool first: the waiting task may ask it for more at once.
        switch outcome {
        case .success(let opened): pool.settle(endpoint, opened)
        case .failure: pool.settle(endpoint, nil)
        }
        let isTaken = attempt.end(outcome)
        if !isTaken || (try? result.get()) == nil { channel.close(promise: nil) }
        if !isTaken, case .success(.session(let session)) = outcome { pool.retire(session) }
        channel.closeFuture.whenComplete { _ in pool.vacate(endpoint, channel) }
    }

    private func bootstrap(
        _ endpoint: NIOTransport.Endpoint, through proxy: NIOTransport.Proxy?, _ context: NIOSSLContext?,
        _ loop: any EventLoop, _ deadline: NIODeadline
    ) -> ClientBootstrap {
        ClientBootstrap(group: loop)
            .connectTimeout(max(.milliseconds(1), deadline - .now()))
            .channelOption(.autoRead, value: false)
            .channelOption(.maxMessagesPerRead, value: 1)
            .channelOption(
                .recvAllocator,
                value: AdaptiveRecvByteBufferAllocator(minimum: 2048, initial: 16 << 10, maximum: 64 << 10)
            )
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.requireDescriptor()
                    let pipeline = channel.pipeline.syncOperations
                    let opening = ConnectionOpening(channel.eventLoop)
                    try pipeline.addHandler(OpeningHandler(opening))
                    guard let proxy else { return try addProtocols(channel, endpoint, context, opening) }
                    try pipeline.addHandler(
                        TunnelHandler(endpoint, through: proxy, limits: limits, opening) { channel in
                            try addProtocols(channel, endpoint, context, opening)
                        })
                }
            }
    }

    /// What speaks with the endpoint itself.
    private func addProtocols(
        _ channel: any Channel, _ endpoint: NIOTransport.Endpoint, _ context: NIOSSLContext?,
        _ opening: ConnectionOpening
    ) throws {
        let pipeline = channel.pipeline.syncOperations
        if let context { try pipeline.addHandler(tlsHandler(endpoint, context)) }
        guard context != nil, http2 else { return try addHTTP1(channel, endpoint, opening, isSecured: context == nil) }
        try pipeline.addHandler(
            NegotiationHandler(opening) { channel, name in
                guard name == "h2" else { return try addHTTP1(channel, endpoint, opening, isSecured: true) }
                try HTTP2Session.begin(
                    on: channel, endpoint, opening, pool: pool, headBytes: limits.headBytes, idleTimeout: idleTimeout)
            })
    }

    private func addHTTP1(
        _ channel: any Channel, _ endpoint: NIOTransport.Endpoint, _ opening: ConnectionOpening, isSecured: Bool
    ) throws {
        try channel.pipeline.syncOperations.addHandler(
            ConnectionHandler(
                opening, endpoint, pool: pool, limits: limits, idleTimeout: idleTimeout, isSecured: isSecured))
    }

    private func tlsHandler(_ endpoint: NIOTransport.Endpoint, _ context: NIOSSLContext) throws -> NIOSSLClientHandler {
        let name = endpoint.serverName ?? endpoint.host
        // "Literal IPv4 and IPv6 addresses are not permitted" in server name indication (RFC 6066 section 3); without a
        // name the certificate has to be for the address.
        let isAddress = (try? SocketAddress(ipAddress: name, port: 0)) != nil
        return try NIOSSLClientHandler(context: context, serverHostname: isAddress ? nil : name)
    }
}
