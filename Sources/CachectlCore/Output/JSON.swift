#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Values as JSON: sorted keys, none omitted; sizes in bytes, durations in seconds, times in ISO 8601.
package enum JSON {
    /// Indented, on several lines.
    package static func text(_ value: some Encodable) throws -> String {
        try encode(value, [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]) + "\n"
    }

    /// On one line.
    package static func line(_ value: some Encodable) throws -> String {
        try encode(value, [.sortedKeys, .withoutEscapingSlashes]) + "\n"
    }

    /// Bytes as Base64.
    package static func base64(_ bytes: [UInt8]) -> String { Data(bytes).base64EncodedString() }

    private static func encode(_ value: some Encodable, _ formatting: JSONEncoder.OutputFormatting) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = formatting
        encoder.nonConformingFloatEncodingStrategy = .convertToString(
            positiveInfinity: "inf", negativeInfinity: "-inf", nan: "nan")
        return String(decoding: try encoder.encode(value), as: UTF8.self)
    }
}

/// A list of values as one JSON array, written as they come.
package struct JSONArrayWriter {
    private var isEmpty = true

    package init() {}

    /// Writes the next value.
    package mutating func append(_ value: some Encodable) throws {
        let line = try JSON.line(value)
        try Output.write((isEmpty ? "[\n  " : ",\n  ") + line.dropLast())
        isEmpty = false
    }

    /// Ends the array.
    package func finish() throws { try Output.write(isEmpty ? "[]\n" : "\n]\n") }
}

/// Encodes nil as `null`, so that programs can rely on every key. A synthesised `encode` would omit it.
@propertyWrapper
package struct Nullable<Value: Encodable>: Encodable {
    package var wrappedValue: Value?

    package init(wrappedValue: Value?) { self.wrappedValue = wrappedValue }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        if let wrappedValue { try container.encode(wrappedValue) } else { try container.encodeNil() }
    }
}
