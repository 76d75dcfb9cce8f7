import ArgumentParser
import HTTPTypes

/// Request fields as users write them.
package enum FieldArgument {
    /// Reads `Name: value` for a field that a request is sent with. Refuses those that the connection decides about, as
    /// they would not be sent.
    package static func parseSent(_ text: String) throws -> HTTPField {
        let field = try parse(text)
        guard !Self.ofConnection.contains(field.name.canonicalName) else {
            throw ValidationError("'\(text)' cannot be sent: the URL and the connection decide about '\(field.name)'.")
        }
        return field
    }

    /// Fields of the message's framing and of the connection: RFC 9110 sections 7.2 and 7.6.1, RFC 9112 sections 6 and
    /// 7.
    private static let ofConnection: Set<String> = [
        "host", "content-length", "transfer-encoding", "connection", "keep-alive", "proxy-authorization",
        "proxy-connection", "te", "trailer", "upgrade", "http2-settings",
    ]

    /// Reads `Name: value`.
    package static func parse(_ text: String) throws -> HTTPField {
        guard let colon = text.firstIndex(of: ":"), let name = HTTPField.Name(String(text[..<colon])) else {
            throw ValidationError("'\(text)' is not a valid field. Use 'Name: value'.")
        }
        let value = String(text[text.index(after: colon)...].drop { $0 == " " })
        guard HTTPField.isValidValue(value) else {
            throw ValidationError("'\(text)' is not a valid field: its value has characters that cannot be sent.")
        }
        return HTTPField(name: name, value: value)
    }
}
