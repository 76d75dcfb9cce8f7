import NIOSSL
import Locks

/// TLS for all connections of a transport, set up when the first one needs it: the system's trust roots take some
/// milliseconds to read.
final class TLSSettings: Sendable {
    private let configuration: TLSConfiguration
    private let made = Mutex<NIOSSLContext?>(nil)

    init(_ configuration: TLSConfiguration, http2: Bool) {
        var configuration = configuration
        configuration.applicationProtocols = http2 ? ["h2", "http/1.1"] : ["http/1.1"]
        self.configuration = configuration
    }

    /// Throws what NIOSSL says of a configuration that cannot be used; tries again the next time.
    func context() throws -> NIOSSLContext {
        try made.withLock { made in
            if let made { return made }
            let context = try NIOSSLContext(configuration: configuration)
            made = context
            return context
        }
    }
}
