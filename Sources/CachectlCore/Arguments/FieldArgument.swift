import ArgumentParser
import HTTPTypes

/// Fields of a request as people write them.
package enum FieldArgument {
    /// `Name: value`.
    package static func parse(_ text: String) throws -> HTTPField {
        guard let colon = text.firstIndex(of: ":"), let name = HTTPField.Name(String(text[..<colon])) else {
            throw ValidationError("'\(text)' is not a field. Write 'Name: value'.")
        }
        return HTTPField(name: name, value: String(text[text.index(after: colon)...].drop { $0 == " " }))
    }
}
