import NIOCore
import SystemPackage

extension GatewayError {
    /// An address that cannot be listened on, in the words of the system: without the library's names of its calls.
    static func cannotListen(_ host: String, _ port: Int, _ error: any Error) -> GatewayError {
        let text = "cannot listen on \(host) port \(port): "
        switch error {
        case let error as IOError:
            let cause = Errno(rawValue: error.errnoCode)
            return GatewayError(.cannotListen, text + "\(cause)", systemError: cause)
        case is SocketAddressError.UnknownHost:
            return GatewayError(.cannotListen, text + "the name has no address")
        default:
            return GatewayError(.cannotListen, text + "\(error)")
        }
    }
}
