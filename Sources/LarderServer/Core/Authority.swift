/// Host and port.
package enum Authority {
    /// The host in lower case, and the port; nil for what is neither.
    package static func split(_ text: some StringProtocol) -> (host: String, port: Int?)? {
        var host = text[...]
        var port: Int?
        let end = text.lastIndex(of: "]") ?? text.startIndex
        if let colon = text[end...].lastIndex(of: ":") {
            let digits = text[text.index(after: colon)...]
            host = text[..<colon]
            if !digits.isEmpty {
                guard digits.utf8.count <= 5, digits.utf8.allSatisfy({ 48...57 ~= $0 }), let number = Int(digits),
                    number <= 65_535
                else { return nil }
                port = number
            }
        }
        guard !host.isEmpty, !host.contains(":") || (host.hasPrefix("[") && host.hasSuffix("]")) else { return nil }
        return (host.lowercased(), port)
    }
}
