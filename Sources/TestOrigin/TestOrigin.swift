import NIOCore
import NIOPosix
import NIOSSL
import Locks

/// A scripted HTTP/1.1 origin in this process, on a real socket of 127.0.0.1.
///
/// ```swift
/// let origin = try await TestOrigin.start { _ in .ok("body").header("Cache-Control", "max-age=60") }
/// let gate = Gate()
/// origin.script("/slow", .ok("first"), .ok("second and later").holding(at: gate))
/// // … requests to origin.url + "/slow" …
/// #expect(origin.requests.map(\.target) == ["/slow", "/slow"])
/// await origin.stop()
/// ```
///
/// Requests on one connection are answered in order, including pipelined ones; connections are independent. Input that
/// is not a valid request is answered with 400 and recorded in ``OriginHistory/failures``. Safe to use from any thread.
public final class TestOrigin: Sendable {
    /// Makes the answer to a request.
    public typealias Responder = @Sendable (OriginRequest) async throws -> OriginAnswer

    /// The part of a request's content that is kept: 1 MiB. All content is read and counted.
    public static let recordedBodyLimit = 1 << 20

    /// The port it listens on.
    public let port: Int
    let recorder: Recorder
    let scripts: Scripts
    /// True if it speaks TLS.
    public let isTLS: Bool
    private let listener: any Channel

    private init(listener: any Channel, port: Int, isTLS: Bool, recorder: Recorder, scripts: Scripts) {
        self.listener = listener
        self.port = port
        self.isTLS = isTLS
        self.recorder = recorder
        self.scripts = scripts
    }

    /// Starts an origin. Throws the system's error if it cannot listen, and NIOSSL's for an invalid certificate.
    /// - Parameters:
    ///   - port: the port. Default: 0, a free one.
    ///   - certificate: speaks TLS with it; nil for none. Default: nil. ``OriginCertificate/local`` is
    ///     sufficient for most tests.
    ///   - otherwise: answers requests whose path has no script. Default: 404.
    public static func start(
        port: Int = 0, certificate: OriginCertificate? = nil, _ otherwise: @escaping Responder = { _ in .notFound }
    ) async throws -> TestOrigin {
        let tls = try certificate?.context()
        let recorder = Recorder()
        let scripts = Scripts(otherwise: otherwise)
        let listener = try await ServerBootstrap(group: OriginExecutor.group)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .serverChannelOption(.backlog, value: 1024)
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    if let tls { try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: tls)) }
                    let stream = try NIOAsyncChannel<ByteBuffer, Never>(wrappingChannelSynchronously: channel)
                    OriginConnection(number: recorder.connectionOpened(channel), recorder: recorder, scripts: scripts)
                        .start(stream)
                }
            }
            .bind(host: "127.0.0.1", port: port).get()
        return TestOrigin(
            listener: listener, port: listener.localAddress?.port ?? port, isTLS: tls != nil, recorder: recorder,
            scripts: scripts)
    }

    /// `127.0.0.1:PORT`.
    public var authority: String { "127.0.0.1:\(port)" }

    /// `http://127.0.0.1:PORT`, or with `https`; without a path.
    public var url: String { "\(isTLS ? "https" : "http")://\(authority)" }

    /// Answers the requests for a path in this order, and repeats the last answer. Replaces the previous script.
    /// - Parameters:
    ///   - path: compared with the whole target first, then with the target without its query.
    ///   - answers: in the order of the requests. Without answers: 404.
    public func script(_ path: String, _ answers: OriginAnswer...) {
        let answers = answers.isEmpty ? [.notFound] : answers
        let turn = Atomic(0)
        scripts.set(path, answersOnHead: false) { _ in
            answers[min(turn.add(1, ordering: .relaxed).oldValue, answers.count - 1)]
        }
    }

    /// Answers the requests for a path by a function. Replaces the previous script.
    /// - Parameters:
    ///   - path: compared with the whole target first, then with the target without its query.
    ///   - onHead: true calls the function as soon as the head has arrived, and reads the content after the answer; no
    ///     `100 Continue` is sent then. Default: false: calls it when the content has arrived.
    ///   - responder: makes the answer.
    public func script(_ path: String, onHead: Bool = false, _ responder: @escaping Responder) {
        scripts.set(path, answersOnHead: onHead, responder)
    }

    /// The history of the origin so far.
    public var history: OriginHistory { recorder.history }

    /// The requests that arrived completely, in the order in which their heads arrived.
    public var requests: [OriginRequest] { history.requests.filter(\.isComplete) }

    /// The requests that arrived completely for a path, whatever their query.
    /// - Parameter path: without the query.
    /// - Returns: the requests in the order in which their heads arrived.
    public func requests(for path: String) -> [OriginRequest] { requests.filter { $0.path == path } }

    /// Waits until a condition holds; tests it after each change.
    /// - Parameter condition: called with the history so far.
    public func wait(until condition: @escaping @Sendable (OriginHistory) -> Bool) async {
        await recorder.wait(until: condition)
    }

    /// Stops listening and closes all connections.
    public func stop() async {
        try? await listener.close().get()
        await recorder.closeAll()
    }
}
