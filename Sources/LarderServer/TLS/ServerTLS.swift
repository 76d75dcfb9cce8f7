import NIOSSL
import Locks
import SystemPackage

/// The certificate for connections to come, which can be read again. Safe to use from any thread.
final class ServerTLS: Sendable {
    /// For TLS 1.2: those that HTTP/2 may be spoken over (RFC 9113 section 9.2.2), as a client may choose it with any.
    /// All have an ephemeral key exchange and authenticated encryption. TLS 1.3 has no others.
    private static let cipherSuites = "ECDHE+AESGCM:ECDHE+CHACHA20"

    private let settings: GatewayTLS
    private let context: Mutex<NIOSSLContext>

    /// Reads certificate and key.
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
        do {
            let chain = try NIOSSLCertificate.fromPEMFile(settings.certificateFile).map {
                NIOSSLCertificateSource.certificate($0)
            }
            var configuration = TLSConfiguration.makeServerConfiguration(
                certificateChain: chain,
                privateKey: .privateKey(try NIOSSLPrivateKey(file: settings.keyFile, format: .pem)))
            // RFC 8996 retires TLS 1.0 and 1.1.
            configuration.minimumTLSVersion = settings.minimumVersion == .tls13 ? .tlsv13 : .tlsv12
            configuration.cipherSuites = cipherSuites
            configuration.applicationProtocols = settings.allowsHTTP2 ? ["h2", "http/1.1"] : ["http/1.1"]
            return try NIOSSLContext(configuration: configuration)
        } catch {
            throw fault(of: settings)
        }
    }

    /// Which of the files is at fault, and how: the library says the same of a missing and of a damaged file.
    private static func fault(of settings: GatewayTLS) -> GatewayError {
        fault(of: settings.certificateFile, "a PEM file with a certificate") {
            _ = try NIOSSLCertificate.fromPEMFile($0)
        }
            ?? fault(of: settings.keyFile, "a PEM file with a private key without a password") {
                _ = try NIOSSLPrivateKey(file: $0, format: .pem)
            }
            ?? GatewayError(
                .tls,
                "the certificate '\(settings.certificateFile)' and the key '\(settings.keyFile)' do not belong"
                    + " together",
                path: FilePath(settings.certificateFile))
    }

    private static func fault(of path: String, _ kind: String, _ load: (String) throws -> Void) -> GatewayError? {
        do {
            try FileDescriptor.open(FilePath(path), .readOnly, options: .closeOnExec).close()
            try load(path)
            return nil
        } catch let error as Errno {
            return GatewayError(.tls, "cannot open '\(path)': \(error)", path: FilePath(path), cause: error)
        } catch {
            return GatewayError(.tls, "'\(path)' is not \(kind)", path: FilePath(path), cause: error)
        }
    }
}
