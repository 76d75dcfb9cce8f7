import ArgumentParser
import CachectlCore
import LarderGateway

/// What `serve` and `objects` make of the same flags.
enum ListenerArguments {
    static func tls(
        _ listen: AddressArgument?, certificate: String?, key: String?, host: String, http2: Bool?,
        isUsedElsewhere: Bool = false
    ) throws -> GatewayTLS? {
        guard let listen else {
            if !isUsedElsewhere, certificate != nil || key != nil {
                throw ValidationError("--certificate and --key need --tls-listen.")
            }
            return nil
        }
        guard let certificate, let key else { throw ValidationError("--tls-listen needs --certificate and --key.") }
        guard listen.host == host else {
            throw ValidationError("--tls-listen: the address must be that of --listen, \(host), not \(listen.host).")
        }
        return GatewayTLS(
            port: listen.port, certificateFile: certificate, keyFile: key, allowsHTTP2: http2 ?? true)
    }

    static func accessLog(_ path: String?, _ format: LogFormatArgument?) throws -> AccessLogConfiguration? {
        guard let path else {
            if format != nil { throw ValidationError("--log-format needs --access-log.") }
            return nil
        }
        return AccessLogConfiguration(format: format?.format ?? .common, path: path == "-" ? nil : path)
    }
}
