import CachectlCore
import LarderServer
import SystemPackage

extension CommandError {
    /// A server that cannot start.
    init(_ error: GatewayError) {
        let status: ExitStatus =
            switch error.code {
            case .cannotListen: (error.cause as? Errno).map(ExitStatus.listening) ?? .temporary
            case .tls, .io: (error.cause as? Errno).map { ExitStatus($0) } ?? .data
            default: .usage
            }
        self.init(status, error.message, path: error.path)
    }
}
