import ArgumentParser
import HTTPTypes

/// Request fields as users write them.
package enum FieldArgument {
    /// Reads `Name: value`.
    package static func parse(_ text: String) throws -> HTTPField {
        guard let colon = text.firstIndex(of: ":"), let name = HTTPField.Name(String(text[..<colon])) else {
            throw ValidationError("'\(text)' is not a valid field. Use 'Name: value'.")
        }
        return HTTPField(name: name, value: String(text[text.index(after: colon)...].drop { $0 == " " }))
    }
}
