import NIOSSL
import Synchronization
import SystemPackage

/// The server's side of TLS: the certificate for connections to come, which can be read again.
final class TLS: Sendable {
    private let settings: GatewayTLS
    private let context: Mutex<NIOSSLContext>

    /// Reads certificate and key. Throws ``GatewayError``.
    init(_ settings: GatewayTLS) throws(GatewayError) {
        self.settings = settings
        context = Mutex(try Self.context(settings))
    }

    /// What a new connection uses.
    var current: NIOSSLContext { context.withLock { $0 } }

    /// Reads certificate and key again; after an error the old ones stay. Connections that are open keep theirs.
    func reload() throws(GatewayError) {
        let new = try Self.context(settings)
        context.withLock { $0 = new }
    }

    private static func context(_ settings: GatewayTLS) throws(GatewayError) -> NIOSSLContext {
        let chain = try read(settings.certificateFile, "a PEM file with a certificate") {
            try NIOSSLCertificate.fromPEMFile($0).map { NIOSSLCertificateSource.certificate($0) }
        }
        let key = try read(settings.keyFile, "a PEM file with a private key without a password") {
            try NIOSSLPrivateKey(file: $0, format: .pem)
        }
        var configuration = TLSConfiguration.makeServerConfiguration(
            certificateChain: chain, privateKey: .privateKey(key))
        configuration.applicationProtocols = settings.allowsHTTP2 ? ["h2", "http/1.1"] : ["http/1.1"]
        do {
            return try NIOSSLContext(configuration: configuration)
        } catch {
            throw GatewayError(
                .tls,
                "the certificate '\(settings.certificateFile)' and the key '\(settings.keyFile)' do not belong together",
                path: FilePath(settings.certificateFile))
        }
    }

    /// The library says of a file that is missing and of one that is damaged the same.
    private static func read<R>(_ path: String, _ kind: String, _ body: (String) throws -> R) throws(GatewayError) -> R
    {
        do {
            try FileDescriptor.open(FilePath(path), .readOnly, options: .closeOnExec).close()
            return try body(path)
        } catch let error as Errno {
            throw GatewayError(.tls, "cannot open '\(path)': \(error)", path: FilePath(path), systemError: error)
        } catch {
            throw GatewayError(.tls, "'\(path)' is not \(kind)", path: FilePath(path))
        }
    }
}
