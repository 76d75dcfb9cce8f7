import NIOSSL
import Synchronization
import SystemPackage

/// The certificate for connections to come, which can be read again.
final class ServerTLS: Sendable {
    private let settings: GatewayTLS
    private let context: Mutex<NIOSSLContext>

    /// Reads certificate and key. Throws ``GatewayError``.
    init(_ settings: GatewayTLS) throws(GatewayError) {
        self.settings = settings
        context = Mutex(try TLS.context(settings))
    }

    /// What a new connection uses.
    var current: NIOSSLContext { context.withLock { $0 } }

    /// Reads certificate and key again; after an error the old ones stay. Connections that are open keep theirs.
    func reload() throws(GatewayError) {
        let new = try TLS.context(settings)
        context.withLock { $0 = new }
    }
}

extension TLS {
    /// Which of the files is at fault, and how: the library says of one that is missing and one that is damaged the same.
    static func fault(of settings: GatewayTLS) -> GatewayError {
        fault(of: settings.certificateFile, "a PEM file with a certificate") {
            _ = try NIOSSLCertificate.fromPEMFile($0)
        }
            ?? fault(of: settings.keyFile, "a PEM file with a private key without a password") {
                _ = try NIOSSLPrivateKey(file: $0, format: .pem)
            }
            ?? GatewayError(
                .tls,
                "the certificate '\(settings.certificateFile)' and the key '\(settings.keyFile)' do not belong together",
                path: FilePath(settings.certificateFile))
    }

    private static func fault(of path: String, _ kind: String, _ load: (String) throws -> Void) -> GatewayError? {
        do {
            try FileDescriptor.open(FilePath(path), .readOnly, options: .closeOnExec).close()
            try load(path)
            return nil
        } catch let error as Errno {
            return GatewayError(.tls, "cannot open '\(path)': \(error)", path: FilePath(path), systemError: error)
        } catch {
            return GatewayError(.tls, "'\(path)' is not \(kind)", path: FilePath(path))
        }
    }
}
