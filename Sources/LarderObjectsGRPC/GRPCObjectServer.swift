import GRPCCore
import GRPCNIOTransportHTTP2Posix
import LarderObjects
import LarderServer
import NIOCore

/// The Remote Execution API's cache over gRPC, on the store, the rights and the figures of an `ObjectServer`: for
/// Bazel, Buck2, Pants, recc and BuildStream.
///
/// ```swift
/// let server = try await ObjectServer.start(ObjectServerConfiguration(), store: store)
/// let calls = try await GRPCObjectServer.start(GRPCObjectServerConfiguration(), beside: server)
/// // …
/// await calls.stop()
/// await server.stop()
/// ```
///
/// Its threads are those of SwiftNIO's singleton, which everything in the process that uses the singleton shares.
///
/// It implements `Capabilities`, `ActionCache`, `ContentAddressableStorage` and `ByteStream`. Objects stored over HTTP
/// are found over gRPC, and the reverse. Safe to use from any thread.
public final class GRPCObjectServer: Sendable {
    /// The address that it listens on.
    public let host: String
    /// The port that it listens on.
    public let port: Int
    /// The address for the settings of clients: `grpc://127.0.0.1:8980`, or `grpcs://` with TLS.
    public var url: String {
        "\(hasTLS ? "grpcs" : "grpc")://\(host.contains(":") ? "[\(host)]" : host):\(port)"
    }

    private let hasTLS: Bool

    private let server: GRPCServer<HTTP2ServerTransport.Posix>
    private let serving: Task<Void, any Error>
    private let uploads: SuspendedUploads
    private let guarded: CallGuards

    private init(
        _ configuration: GRPCObjectServerConfiguration, _ port: Int, _ server: GRPCServer<HTTP2ServerTransport.Posix>,
        _ serving: Task<Void, any Error>, _ uploads: SuspendedUploads, _ guarded: CallGuards
    ) {
        host = configuration.host
        self.port = port
        hasTLS = configuration.certificate != nil
        self.server = server
        self.serving = serving
        self.uploads = uploads
        self.guarded = guarded
    }

    /// Starts a server.
    ///
    /// - Parameters:
    ///   - configuration: the address and the limits; it cannot be changed later.
    ///   - objects: whose objects it serves; stop it after this one.
    /// - Returns: the server, when connections are accepted.
    /// - Throws: `GatewayError`: `invalidArgument`, `tls` for a certificate or key that cannot be read, `cannotListen`.
    public static func start(
        _ configuration: GRPCObjectServerConfiguration, beside objects: ObjectServer
    ) async throws(GatewayError) -> GRPCObjectServer {
        guard configuration.memoryBytes >= 8 << 20 else {
            throw GatewayError(
                .invalidArgument, "'memoryBytes' is \(configuration.memoryBytes): the server needs at least 8 MiB")
        }
        let guards = CallGuards(configuration)
        let uploads = SuspendedUploads(configuration)
        let transport = HTTP2ServerTransport.Posix(
            address: configuration.host.contains(":")
                ? .ipv6(host: configuration.host, port: configuration.port)
                : .ipv4(host: configuration.host, port: configuration.port),
            transportSecurity: try security(configuration.certificate),
            config: transportConfiguration(configuration, guards))
        let calls = CallContext(objects.service, uploads)
        let server = GRPCServer(
            transport: transport,
            services: [
                CapabilitiesService(context: calls), ActionCacheService(context: calls),
                ContentService(context: calls), ByteStreamService(context: calls),
            ])
        let serving = Task { try await server.serve() }
        do {
            let address = try await transport.listeningAddress
            let port = address.ipv4?.port ?? address.ipv6?.port ?? configuration.port
            return GRPCObjectServer(configuration, port, server, serving, uploads, guards)
        } catch {
            let cause: any Error
            do {
                try await serving.value
                cause = error
            } catch let failure as RuntimeError {
                cause = failure.cause ?? failure
            } catch { cause = error }
            throw .cannotListen(configuration.host, configuration.port, cause)
        }
    }

    private static func security(
        _ certificate: GRPCObjectServerConfiguration.Certificate?
    ) throws(GatewayError) -> HTTP2ServerTransport.Posix.TransportSecurity {
        guard let certificate else { return .plaintext }
        // They are checked as the object server checks its own; the library would tell when the first client connects.
        var files = ServerConfiguration()
        files.port = nil
        files.tls = GatewayTLS(
            port: 0, certificateFile: certificate.certificateFile, keyFile: certificate.keyFile)
        try Server.check(files)
        return .tls(
            certificateChain: [.file(path: certificate.certificateFile, format: .pem)],
            privateKey: .file(path: certificate.keyFile, format: .pem)
        ) { $0.requireALPN = true }
    }

    private static func transportConfiguration(
        _ configuration: GRPCObjectServerConfiguration, _ guards: CallGuards
    ) -> HTTP2ServerTransport.Posix.Config {
        .defaults { settings in
            // The guard of the call refuses what is longer, with a status.
            settings.rpc.maxRequestPayloadSize = Limits.message
            settings.http2.maxConcurrentStreams = configuration.callsPerConnection
            // Enough for one connection to fill a link of 10 Gbit/s over half a millisecond.
            settings.http2.targetWindowSize = 512 << 10
            settings.http2.maxFrameSize = 64 << 10
            settings.connection.keepalive.time = .seconds(60)
            settings.connection.keepalive.clientBehavior.allowWithoutCalls = true
            settings.connection.keepalive.clientBehavior.minPingIntervalWithoutCalls = .seconds(10)
            settings.connection.maxIdleTime = .seconds(30 * 60)
            settings.channelDebuggingCallbacks.onAcceptTCPConnection = { guards.admit($0) }
            settings.channelDebuggingCallbacks.onAcceptHTTP2Stream = { guards.watch($0) }
        }
    }

    /// Stops the server: it accepts no new connections and finishes calls in progress. When the time is up, it ends the
    /// remaining calls.
    ///
    /// - Parameter drain: how long calls may take to finish. Default: 10 s.
    public func stop(drain: Duration = .seconds(10)) async {
        server.beginGracefulShutdown()
        let deadline = Task {
            try await Task.sleep(for: drain)
            serving.cancel()
            guarded.closeAll()
        }
        _ = try? await serving.value
        deadline.cancel()
        uploads.removeAll()
    }
}

/// Fixed limits.
enum Limits {
    /// The largest message that a client may send, in bytes.
    static let message = 4 << 20
    /// The largest message that the server sends, in bytes: the default limit of gRPC's clients.
    static let sentMessage = 4 << 20
    /// The most bytes that the blobs of one message may have in total. Each blob adds about 90 bytes, so with small
    /// blobs a message contains more than its blobs.
    static let batch = 2 << 20
    /// The most bytes of a message in addition to those of a blob.
    static let blobOverhead: Int64 = 160
    /// The most blobs in one call of `FindMissingBlobs`, which is as many as fit in a message.
    static let digests = 1 << 17
    /// Bytes of a blob in one message of a stream.
    static let piece: Int64 = 64 << 10
    /// The most bytes that a result may contain in place of blobs.
    static let inlined: Int64 = 1 << 20
}
