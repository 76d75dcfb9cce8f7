import HTTPWire
import LarderHTTP
import NIOCore
import NIOPosix
import NIOSSL
import Synchronization

/// Opens connections.
struct Connector: Sendable {
    private let pool: ConnectionPool
    private let limits: HeadLimits
    private let idleTimeout: Duration
    private let tls: TLSSettings

    init(_ configuration: NIOTransport.Configuration, _ pool: ConnectionPool) {
        self.pool = pool
        limits = HeadLimits(headBytes: configuration.maximumHeadBytes)
        idleTimeout = configuration.idleTimeout
        tls = TLSSettings(configuration.tls)
    }

    /// Opens a connection in a place of the pool, which gets it back if this fails.
    func connect(
        to endpoint: NIOTransport.Endpoint, on loop: any EventLoop, _ deadline: NIODeadline
    ) async throws(TransportError) -> Connection {
        let attempt = Attempt(endpoint)
        return try await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                guard attempt.begin(continuation) else { return pool.vacate(endpoint, nil) }
                do {
                    // Not on the event loop: trust roots are read the first time.
                    let context = endpoint.isTLS ? try tls.context() : nil
                    open(endpoint, context, loop, deadline, attempt)
                } catch {
                    pool.vacate(endpoint, nil)
                    attempt.end(.failure(.cannotConnect(endpoint, error)))
                }
            }
        } onCancel: {
            attempt.end(.failure(.cancelled(endpoint, mayHaveBeenSeen: false)))
        }.get()
    }

    private func open(
        _ endpoint: NIOTransport.Endpoint, _ context: NIOSSLContext?, _ loop: any EventLoop, _ deadline: NIODeadline,
        _ attempt: Attempt
    ) {
        let timer = loop.scheduleTask(deadline: deadline) {
            attempt.end(
                .failure(
                    TransportError(.timedOut, mayHaveBeenSeen: false, "\(endpoint) did not take a connection in time")))
        }
        // Where the name is looked up, where IPv6 and IPv4 race (RFC 8305) and where TLS starts.
        bootstrap(endpoint, context, loop, deadline).connect(host: endpoint.host, port: endpoint.port).whenComplete {
            result in
            switch result {
            case .failure(let error):
                timer.cancel()
                pool.vacate(endpoint, nil)
                attempt.end(.failure(.cannotConnect(endpoint, error)))
            case .success(let channel):
                do {
                    let handler = try channel.pipeline.syncOperations.handler(type: ConnectionHandler.self)
                    let connection = Connection(channel, handler, endpoint)
                    handler.connection = connection
                    channel.closeFuture.whenComplete { _ in
                        timer.cancel()
                        pool.vacate(endpoint, connection)
                    }
                    attempt.note(channel)
                    handler.ready.futureResult.whenComplete { result in
                        timer.cancel()
                        attempt.end(result.map { connection }.mapError { .cannotConnect(endpoint, $0) })
                    }
                } catch {
                    // Closed between connecting and now: the handler is gone.
                    timer.cancel()
                    channel.close(promise: nil)
                    pool.vacate(endpoint, nil)
                    attempt.end(.failure(.cannotConnect(endpoint, error)))
                }
            }
        }
    }

    private func bootstrap(
        _ endpoint: NIOTransport.Endpoint, _ context: NIOSSLContext?, _ loop: any EventLoop, _ deadline: NIODeadline
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
                    let pipeline = channel.pipeline.syncOperations
                    if let context { try pipeline.addHandler(tlsHandler(endpoint, context)) }
                    try pipeline.addHandler(
                        ConnectionHandler(
                            channel.eventLoop, endpoint, pool: pool, limits: limits, idleTimeout: idleTimeout))
                }
            }
    }

    private func tlsHandler(_ endpoint: NIOTransport.Endpoint, _ context: NIOSSLContext) throws -> NIOSSLClientHandler {
        let name = endpoint.serverName ?? endpoint.host
        // "Literal IPv4 and IPv6 addresses are not permitted" in server name indication (RFC 6066 section 3); without a name
        // the certificate has to be for the address.
        let isAddress = (try? SocketAddress(ipAddress: name, port: 0)) != nil
        return try NIOSSLClientHandler(context: context, serverHostname: isAddress ? nil : name)
    }
}

/// One connection that is being opened; ends once.
private final class Attempt: Sendable {
    typealias Outcome = Result<Connection, TransportError>

    private struct State {
        var continuation: CheckedContinuation<Outcome, Never>?
        var channel: (any Channel)?
        var outcome: Outcome?
    }

    private let endpoint: NIOTransport.Endpoint
    private let state = Mutex(State())

    init(_ endpoint: NIOTransport.Endpoint) { self.endpoint = endpoint }

    /// False when it was ended before; the continuation has been resumed then.
    func begin(_ continuation: CheckedContinuation<Outcome, Never>) -> Bool {
        let outcome = state.withLock { state in
            if state.outcome == nil { state.continuation = continuation }
            return state.outcome
        }
        if let outcome { continuation.resume(returning: outcome) }
        return outcome == nil
    }

    /// The channel to be closed if nobody wants it any more.
    func note(_ channel: any Channel) {
        let isOver = state.withLock { state in
            state.channel = channel
            return state.outcome != nil
        }
        if isOver { channel.close(promise: nil) }
    }

    func end(_ outcome: Outcome) {
        let (continuation, channel) = state.withLock { state in
            guard state.outcome == nil else {
                return (nil, nil) as (CheckedContinuation<Outcome, Never>?, (any Channel)?)
            }
            state.outcome = outcome
            defer { state.continuation = nil }
            return (state.continuation, state.channel)
        }
        if case .failure = outcome { channel?.close(promise: nil) }
        continuation?.resume(returning: outcome)
    }
}
