import ArgumentParser
import LarderGateway

/// Where requests go: `URL` for all hosts, `HOST=URL` for one.
struct OriginArgument: Sendable {
    let text: String
    /// In lower case; nil for all.
    let host: String?
    let server: OriginServer

    static func parse(_ text: String) throws -> OriginArgument {
        // A host has no slash, a URL has one before any equals sign.
        let equals = text.firstIndex(of: "=").flatMap { text[..<$0].contains("/") ? nil : $0 }
        do throws(GatewayError) {
            let server = try OriginServer(equals.map { String(text[text.index(after: $0)...]) } ?? text)
            return OriginArgument(text: text, host: equals.map { text[..<$0].lowercased() }, server: server)
        } catch {
            throw ValidationError(error.message)
        }
    }
}
