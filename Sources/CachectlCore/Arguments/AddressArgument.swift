import ArgumentParser

/// An address and a port to listen on.
package struct AddressArgument: Sendable, Hashable {
    package let host: String
    package let port: Int

    package init(host: String, port: Int) {
        self.host = host
        self.port = port
    }

    /// Reads `127.0.0.1:8080`, `[::1]:8080` or `localhost:0`. A port alone means 127.0.0.1.
    package static func parse(_ text: String) throws -> AddressArgument {
        let colon = text.lastIndex(of: ":")
        let digits = colon.map { text[text.index(after: $0)...] } ?? text[...]
        guard let port = Int(digits), (0...65_535).contains(port), digits.utf8.allSatisfy({ (48...57).contains($0) })
        else {
            throw ValidationError("'\(text)' is not a valid address and port. Use 127.0.0.1:8080, [::1]:8080 or 8080.")
        }
        var host = colon.map { String(text[..<$0]) } ?? "127.0.0.1"
        if host.isEmpty {
            throw ValidationError(
                "'\(text)' has no address. Use 127.0.0.1\(text), or 0.0.0.0\(text) for all addresses.")
        }
        if host.hasPrefix("["), host.hasSuffix("]") {
            host = String(host.dropFirst().dropLast())
        } else if host.contains(":") {
            throw ValidationError("'\(text)': put an IPv6 address in brackets: [::1]:8080.")
        }
        return AddressArgument(host: host, port: port)
    }
}
