import HTTPTypes
import RawStructuredFieldValues

/// The parts of a query that do not affect a response: the field `No-Vary-Search`
/// (draft-ietf-httpbis-no-vary-search-10), its "URL variation config".
public struct URLVariation: Sendable, Hashable {
    /// The parameters that count.
    public enum Parameters: Sendable, Hashable {
        /// All but these: `params`.
        case allExcept(Set<[UInt8]>)
        /// These alone: `except`.
        case only(Set<[UInt8]>)
    }

    /// The parameters that count; names decoded.
    public let parameters: Parameters
    /// True if the order of parameters with different names counts; false with `key-order`.
    public let hasOrder: Bool

    /// The variation that a response states (sections 3 and 4). Nil if every byte of the query counts: without the
    /// field, with an invalid one, and with one that states just that.
    ///
    /// - Parameter response: its `No-Vary-Search` field counts.
    public init?(of response: HTTPResponse) {
        guard let value = response.headerFields.combined(.noVarySearch) else { return nil }
        var parser = StructuredFieldValueParser(value)
        guard let members = try? parser.parseDictionaryFieldValue() else { return nil }
        var hasOrder = true
        var (params, except): (Set<[UInt8]>?, Set<[UInt8]>?)
        for (name, member) in members {
            switch name {
            case "key-order":
                guard case .item(let item) = member, case .bool(let ignoresOrder) = item.rfc9651BareItem else {
                    return nil
                }
                hasOrder = !ignoresOrder
            case "params":
                guard let names = Self.names(member) else { return nil }
                params = names
            case "except":
                guard let names = Self.names(member) else { return nil }
                except = names
            default: continue
            }
        }
        if params != nil, except != nil { return nil }
        parameters = except.map { .only($0) } ?? .allExcept(params ?? [])
        self.hasOrder = hasOrder
        if hasOrder, parameters == .allExcept([]) { return nil }
    }

    /// The strings of an inner list, as names of parameters; nil for anything else.
    private static func names(_ member: ItemOrInnerList) -> Set<[UInt8]>? {
        guard case .innerList(let list) = member else { return nil }
        var names: Set<[UInt8]> = []
        for item in list.bareInnerList {
            guard case .string(let text) = item.rfc9651BareItem else { return nil }
            names.insert(decoded(Array(text.utf8)[...]))
        }
        return names
    }

    /// The part of a query that counts, in the same form for all equivalent queries (section 5), without a space.
    /// - Parameter query: the part after `?`; nil and an empty one are the same.
    ///
    /// Bytes that are not UTF-8 stay as they are, although the draft lets a cache treat them all as U+FFFD: this gives
    /// fewer hits, but no false ones.
    ///
    /// - Returns: text that is equal for equivalent queries.
    public func canonical(_ query: String?) -> String {
        var pairs: [(name: [UInt8], value: [UInt8])] = []
        for part in (query ?? "").utf8.split(separator: UInt8(ascii: "&")) {
            let bytes = Array(part)
            let equals = bytes.firstIndex(of: UInt8(ascii: "=")) ?? bytes.endIndex
            let name = Self.decoded(bytes[..<equals])
            let counts =
                switch parameters {
                case .allExcept(let names): !names.contains(name)
                case .only(let names): names.contains(name)
                }
            if counts { pairs.append((name, Self.decoded(bytes[equals...].dropFirst()))) }
        }
        if !hasOrder {
            // Parameters of one name keep their order.
            let order = pairs.indices.sorted {
                pairs[$0].name == pairs[$1].name
                    ? $0 < $1 : pairs[$0].name.lexicographicallyPrecedes(pairs[$1].name)
            }
            pairs = order.map { pairs[$0] }
        }
        return pairs.map { Self.encoded($0.name) + "=" + Self.encoded($0.value) }.joined(separator: "&")
    }

    /// Reading of application/x-www-form-urlencoded, as bytes: https://url.spec.whatwg.org/#urlencoded-parsing
    private static func decoded(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
        var result: [UInt8] = []
        var index = bytes.startIndex
        while index < bytes.endIndex {
            let byte = bytes[index]
            if byte == UInt8(ascii: "%"), index + 2 < bytes.endIndex, let high = hexadecimal(bytes[index + 1]),
                let low = hexadecimal(bytes[index + 2])
            {
                result.append(high << 4 | low)
                index += 3
                continue
            }
            result.append(byte == UInt8(ascii: "+") ? 0x20 : byte)
            index += 1
        }
        return result
    }

    private static func hexadecimal(_ byte: UInt8) -> UInt8? {
        switch byte {
        case 0x30...0x39: byte - 0x30
        case 0x41...0x46: byte - 0x37
        case 0x61...0x66: byte - 0x57
        default: nil
        }
    }

    private static func encoded(_ bytes: [UInt8]) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        var result: [UInt8] = []
        for byte in bytes {
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
                UInt8(ascii: "~"):
                result.append(byte)
            default: result += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: result, as: UTF8.self)
    }

    /// One text for each variation, without a space, which ``init(text:)`` can read.
    public var text: String {
        let (mark, names) =
            switch parameters {
            case .allExcept(let names): ("p", names)
            case .only(let names): ("e", names)
            }
        let list = names.sorted { $0.lexicographicallyPrecedes($1) }.map { ";" + Self.encoded($0) }.joined()
        return (hasOrder ? "o" : "k") + mark + list
    }

    /// Reads ``text``; nil for anything else.
    ///
    /// - Parameter text: the result of ``text``.
    public init?(text: some StringProtocol) {
        let parts = text.split(separator: ";", omittingEmptySubsequences: false)
        guard let kind = parts.first, kind.count == 2 else { return nil }
        let names = Set(parts.dropFirst().map { Self.decoded(Array($0.utf8)[...]) })
        switch kind.last {
        case "p": parameters = .allExcept(names)
        case "e": parameters = .only(names)
        default: return nil
        }
        switch kind.first {
        case "o": hasOrder = true
        case "k": hasOrder = false
        default: return nil
        }
    }
}
