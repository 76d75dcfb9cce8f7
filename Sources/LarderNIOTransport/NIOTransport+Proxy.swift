import NIOCore

extension NIOTransport {
    /// A proxy (RFC 9110 section 3.7) that speaks HTTP/1.1 without TLS.
    ///
    /// Requests for `http` URLs are sent to it with their whole URL; its response is the response, 407 included. All
    /// other requests use tunnels made with CONNECT: those for `https`, and those whose `route` or `destination`
    /// differs from the URL. A refused tunnel fails with `TransportError.Code.cannotConnect`, and the message has the
    /// proxy's status: a proxy's answer to CONNECT must not be mistaken for the answer of the origin.
    public struct Proxy: Sendable, Hashable, CustomStringConvertible {
        /// A name, or an IPv4 or IPv6 address without brackets.
        public var host: String
        /// The port, from 0 to 65535.
        public var port: Int
        /// The credentials for the proxy; sent to the proxy only. Default: nil.
        public var credentials: Credentials?
        /// Hosts to connect to directly. `example.org` means the host and all its subdomains, as does `.example.org`;
        /// `example.org:8080` for that port only; `*` for everything; an address matches itself. Default: none.
        public var exceptions: [String]

        /// Names a proxy. Each parameter sets the property of its name.
        public init(host: String, port: Int, credentials: Credentials? = nil, exceptions: [String] = []) {
            self.host = host
            self.port = port
            self.credentials = credentials
            self.exceptions = exceptions
        }

        /// Host and port, without credentials.
        public var description: String { endpoint.description }

        /// User name and password for the scheme Basic (RFC 7617).
        public struct Credentials: Sendable, Hashable, CustomStringConvertible {
            let field: String

            /// - Parameters:
            ///   - user: without a colon.
            ///   - password: any text; sent as UTF-8.
            public init(user: String, password: String) {
                field = "Basic " + Self.base64(Array("\(user):\(password)".utf8))
            }

            /// Shows none of the credentials.
            public var description: String { "credentials" }
        }

        var endpoint: Endpoint { Endpoint(host: host, port: port) }

        /// Whether connections to an endpoint are made through it.
        func serves(_ endpoint: Endpoint) -> Bool {
            guard endpoint != self.endpoint else { return false }
            let host = endpoint.host.lowercased()
            return !exceptions.contains { exception in
                let exception = exception.lowercased()
                if exception == "*" || exception == host || exception == "\(endpoint)".lowercased() { return true }
                var (name, port) = (exception[...], String?.none)
                if let colon = exception.lastIndex(of: ":"), !exception[..<colon].contains(":") {
                    name = exception[..<colon]
                    port = String(exception[exception.index(after: colon)...])
                }
                if let port, port != String(endpoint.port) { return false }
                while name.first == "." { name.removeFirst() }
                return !name.isEmpty && (host == name || host.hasSuffix("." + name))
            }
        }
    }
}

extension NIOTransport.Proxy.Credentials {
    /// RFC 4648 section 4.
    private static func base64(_ bytes: [UInt8]) -> String {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
        var result: [UInt8] = []
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let part = bytes[start..<min(start + 3, bytes.count)]
            let bits = part.reduce(0) { $0 << 8 | Int($1) } << (8 * (3 - part.count))
            for index in 0..<4 {
                result.append(index <= part.count ? alphabet[bits >> (18 - 6 * index) & 63] : UInt8(ascii: "="))
            }
        }
        return String(decoding: result, as: UTF8.self)
    }
}
