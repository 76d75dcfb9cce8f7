import Crypto
import HTTPTypes

/// Normalisation of selecting fields to values of identical meaning (RFC 9111 section 4.1).
///
/// Every field: lines combined, white space around commas and empty members dropped, quoted strings left alone. For
/// `Accept-Language`, `Accept-Encoding` and `Accept-Charset` also case and the spelling of weights, for `Accept` the
/// case of names and types (RFC 9110 section 12.5). The order of members is dropped for `Accept-Encoding` and
/// `Accept-Charset`, where all that are listed serve the client. In `Accept-Language` and `Accept` it stays among
/// members of equal weight: some origins take it for the user's preference (section 12.5.4), and then two orders get
/// two answers. For credentials the SHA-256 replaces the value: the secondary key is stored, and credentials must not
/// be.
enum SelectingValue {
    static let secrets: Set<String> = ["authorization", "cookie", "proxy-authorization"]

    /// The normalised value of a field of a request, nil when it is missing.
    static func normalized(name: String, in request: HTTPFields) -> [UInt8]? {
        var lines: [UInt8]?
        for field in request where field.name.canonicalName == name {
            lines = lines.map { $0 + [FieldBytes.comma] + field.bytes } ?? field.bytes
        }
        return lines.map { normalized(name: name, $0) }
    }

    /// The same, from the values of all lines joined by commas.
    static func normalized(name: String, _ value: [UInt8]) -> [UInt8] {
        if secrets.contains(name) { return Array("sha-256:".utf8) + SHA256.hash(data: value) }
        var members = FieldBytes.members(value).map { Array($0) }
        switch name {
        case "accept-encoding", "accept-charset":
            members = members.map { weighted(FieldBytes.lowercased($0)) }
            members.sort { $0.lexicographicallyPrecedes($1) }
        case "accept-language": members = byWeight(members.map { weighted(FieldBytes.lowercased($0)) })
        case "accept": members = byWeight(members.map { mediaRange($0) })
        default: break
        }
        return Array(members.joined(separator: [FieldBytes.comma]))
    }

    /// Members in descending order of their weights, those of equal weight in the order given. The order stays whole
    /// where a weight cannot be read.
    private static func byWeight(_ members: [[UInt8]]) -> [[UInt8]] {
        var weights: [Int] = []
        for member in members {
            guard let weight = lastWeight(member) else { return members }
            weights.append(weight)
        }
        let order = members.indices.sorted { (weights[$1], $0) < (weights[$0], $1) }
        return order.map { members[$0] }
    }

    /// The weight that a member ends with, in thousandths; 1,000 where it has none, nil where it is broken.
    private static func lastWeight(_ member: [UInt8]) -> Int? {
        guard let semicolon = member.lastIndex(of: UInt8(ascii: ";")) else { return 1_000 }
        let parameter = member[(semicolon + 1)...]
        guard FieldBytes.lowercased(parameter.prefix(2)) == Array("q=".utf8) else { return 1_000 }
        let digits = parameter.dropFirst(2)
        // Weights that were normalised before are whole numbers of thousandths.
        if digits.count <= 4, digits.allSatisfy({ FieldBytes.isDigit($0) }), digits.count > 1 || digits.first != 0x31 {
            return digits.reduce(0) { $0 * 10 + Int($1 - 0x30) }
        }
        return weight(digits)
    }

    /// `name;q=0.50` as `name;q=500`, the weight 1 left out. What is not of that form stays as it is.
    private static func weighted(_ member: [UInt8]) -> [UInt8] {
        guard let (name, weight) = split(member) else { return member }
        return weight == 1_000 ? Array(name) : Array(name) + Array(";q=\(weight)".utf8)
    }

    /// A member of a weighted list with its weight in thousandths (RFC 9110 section 12.4.2); nil when there are other
    /// parameters or the weight is broken.
    static func split(_ member: [UInt8]) -> (name: ArraySlice<UInt8>, weight: Int)? {
        guard let semicolon = member.firstIndex(of: UInt8(ascii: ";")) else { return (member[...], 1_000) }
        let name = FieldBytes.trimmed(member[..<semicolon])
        let parameter = FieldBytes.trimmed(member[(semicolon + 1)...])
        guard parameter.count >= 3, FieldBytes.lowercased(parameter.prefix(2)) == Array("q=".utf8),
            let weight = weight(parameter.dropFirst(2))
        else { return nil }
        return (name, weight)
    }

    private static func weight(_ bytes: ArraySlice<UInt8>) -> Int? {
        guard let first = bytes.first, first == 0x30 || first == 0x31, bytes.count <= 5 else { return nil }
        var value = Int(first - 0x30) * 1_000
        let fraction = bytes.dropFirst()
        guard let dot = fraction.first else { return value }
        guard dot == 0x2E else { return nil }
        var scale = 100
        for digit in fraction.dropFirst() {
            guard FieldBytes.isDigit(digit) else { return nil }
            value += Int(digit - 0x30) * scale
            scale /= 10
        }
        return value <= 1_000 ? value : nil
    }

    /// A media range with the type in lower case and no white space around semicolons outside quotes; parameter
    /// values keep their case.
    private static func mediaRange(_ member: [UInt8]) -> [UInt8] {
        var result: [UInt8] = []
        var inType = true
        var quoted = false
        for byte in member {
            if byte == FieldBytes.quote { quoted.toggle() }
            if byte == UInt8(ascii: ";") { inType = false }
            if FieldBytes.isSpace(byte) && !quoted { continue }
            result.append(inType ? FieldBytes.lowercased(byte) : byte)
        }
        return result
    }

    /// The language that a request likes strictly best, in lower case; nil when there is a tie, a wildcard or
    /// anything broken on top.
    static func preferredLanguage(_ request: HTTPFields) -> [UInt8]? {
        guard let value = request.combined(.acceptLanguage) else { return nil }
        var best: (name: [UInt8], weight: Int)?
        var isTied = false
        for member in FieldBytes.members(value) {
            guard let (name, weight) = split(FieldBytes.lowercased(member)) else { return nil }
            if let known = best, weight <= known.weight {
                isTied = isTied || weight == known.weight
            } else {
                best = (Array(name), weight)
                isTied = false
            }
        }
        guard let best, !isTied, best.weight > 0, best.name != [UInt8(ascii: "*")] else { return nil }
        return best.name
    }
}
