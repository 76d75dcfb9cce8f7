import HTTPTypes

/// The request fields that selected a stored response (RFC 9111 section 4.1), normalised: the secondary cache key.
public struct SelectingFields: Sendable, Hashable {
    /// One field nominated by `Vary`.
    public struct Field: Sendable, Hashable {
        /// The name in lower case.
        public let name: String
        /// The normalised value; nil if the request did not have the field.
        public let value: [UInt8]?
    }

    /// The nominated fields in ascending order of their names, each once.
    public let fields: [Field]

    /// Nothing nominated: the response matches every request.
    public static let none = SelectingFields(fields: [])

    init(fields: [Field]) { self.fields = fields }

    /// The fields of `request` that `vary` nominates; nil when it has the member `*` or one that is not a field name.
    init?(vary: [UInt8]?, request: HTTPFields) {
        guard let vary else {
            self = .none
            return
        }
        var names: Set<String> = []
        for member in FieldBytes.members(vary) {
            guard FieldBytes.isToken(member), !member.elementsEqual([UInt8(ascii: "*")]) else { return nil }
            names.insert(String(decoding: FieldBytes.lowercased(member), as: UTF8.self))
        }
        self.init(
            fields: names.sorted().map { Field(name: $0, value: SelectingValue.normalized(name: $0, in: request)) }
        )
    }

    /// True if a request has the same nominated fields.
    ///
    /// - Parameter request: the fields of the request, compared as RFC 9111 section 4.1 says.
    /// - Returns: true also if no field is nominated.
    public func matches(_ request: HTTPFields) -> Bool {
        fields.allSatisfy { SelectingValue.normalized(name: $0.name, in: request) == $0.value }
    }

    /// An unambiguous encoding for use in a key: for each field the name, `=` and the value or `-` and nothing, every
    /// part preceded by its length as 4 bytes, least significant first.
    public var encoded: [UInt8] {
        var bytes: [UInt8] = []
        func append(_ part: some Collection<UInt8>) {
            for shift in [0, 8, 16, 24] { bytes.append(UInt8(truncatingIfNeeded: part.count >> shift)) }
            bytes.append(contentsOf: part)
        }
        for field in fields {
            append(field.name.utf8)
            bytes.append(field.value == nil ? UInt8(ascii: "-") : UInt8(ascii: "="))
            append(field.value ?? [])
        }
        return bytes
    }

    /// The names in ``encoded``; nil for any other bytes.
    package static func names(encoded bytes: UnsafeRawBufferPointer) -> [String]? {
        var names: [String] = []
        var index = 0
        func part() -> Range<Int>? {
            guard bytes.count - index >= 4 else { return nil }
            let length = Int(UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: index, as: UInt32.self)))
            index += 4
            guard length <= bytes.count - index else { return nil }
            index += length
            return index - length..<index
        }
        while index < bytes.count {
            guard let name = part(), index < bytes.count else { return nil }
            index += 1
            guard part() != nil else { return nil }
            names.append(String(decoding: UnsafeRawBufferPointer(rebasing: bytes[name]), as: UTF8.self))
        }
        return names
    }

    /// Reads ``encoded``; nil for any other bytes.
    ///
    /// - Parameter bytes: the result of ``encoded``.
    public init?(encoded bytes: [UInt8]) {
        var index = 0
        func part() -> [UInt8]? {
            guard bytes.count - index >= 4 else { return nil }
            let length = (0..<4).reduce(0) { $0 | Int(bytes[index + $1]) << ($1 * 8) }
            index += 4
            guard length <= bytes.count - index else { return nil }
            defer { index += length }
            return Array(bytes[index..<index + length])
        }
        var fields: [Field] = []
        while index < bytes.count {
            guard let name = part(), FieldBytes.isToken(name), index < bytes.count else { return nil }
            let kind = bytes[index]
            index += 1
            guard let value = part(), kind == UInt8(ascii: "=") || (kind == UInt8(ascii: "-") && value.isEmpty) else {
                return nil
            }
            fields.append(
                Field(name: String(decoding: name, as: UTF8.self), value: kind == UInt8(ascii: "=") ? value : nil))
        }
        self.init(fields: fields)
    }
}
