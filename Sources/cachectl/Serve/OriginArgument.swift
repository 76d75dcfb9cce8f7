import ArgumentParser
import LarderGateway

/// An origin: `URL` for all hosts, or `HOST=URL` for one host.
struct OriginArgument: Sendable {
    let text: String
    /// The host in lower case; nil for all hosts.
    let host: String?
    let server: OriginServer

    static func parse(_ text: String) throws -> OriginArgument {
        // A host has no slash, and a URL has one before its first equals sign.
        let equals = text.firstIndex(of: "=").flatMap { text[..<$0].contains("/") ? nil : $0 }
        do throws(GatewayError) {
            let server = try OriginServer(equals.map { String(text[text.index(after: $0)...]) } ?? text)
            return OriginArgument(text: text, host: equals.map { text[..<$0].lowercased() }, server: server)
        } catch {
            throw ValidationError(error.message)
        }
    }
}
