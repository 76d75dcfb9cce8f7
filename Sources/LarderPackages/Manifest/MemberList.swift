import Larder

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The list of members, which this project's packages have in addition to the manifest: a line of JSON for the package,
/// then one for each member with its digest and its fields. `docs/packages.md` describes each name.
enum MemberList {
    /// The name of the member.
    static let fileName = "larder.members"
    /// The member with the signature.
    static let signatureName = "larder.signature"
    /// Where user data are: `.userdata/KEY/FILE`.
    static let dataFolder = ".userdata/"

    /// Whether a text can be the version of a package: 200 bytes at most, and no control characters.
    static func isVersion(_ text: String) -> Bool {
        text.utf8.count <= 200 && !text.unicodeScalars.contains { $0.properties.generalCategory == .control }
    }

    /// The first line.
    struct Header: Codable, Hashable {
        /// Version of the form: 1.
        var larder = 1
        var name: String
        var version: String
        /// RFC 3339 in UTC, whole seconds.
        var created: String
        /// Of an increment: what it changes.
        var base: Base?
        /// Lines that follow.
        var members: Int

        struct Base: Codable, Hashable {
            var version: String
            /// The SHA-256 of its list.
            var list: String
        }

        var line: String {
            var text = CanonicalJSON()
            text.add("larder", larder)
            text.add("name", name)
            text.add("version", version)
            text.add("created", created)
            if let base {
                var inner = CanonicalJSON()
                inner.add("version", base.version)
                inner.add("list", base.list)
                text.add("base", inner)
            }
            text.add("members", members)
            return text.text
        }
    }

    /// A line for a member.
    struct Line: Codable, Hashable {
        /// Of a response; nil for user data.
        var url: String?
        /// The name of user data, below ``dataFolder``; nil for a response.
        var data: String?
        /// The member of the archive. Nil: as in the version that an increment changes.
        var path: String?
        /// The SHA-256 of the content.
        var sha256: String
        /// Its length in bytes.
        var size: Int64
        /// Nil: 200.
        var status: Int?
        /// Header fields: name and value each.
        var fields: [[String]]?

        var line: String {
            var text = CanonicalJSON()
            if let url { text.add("url", url) }
            if let data { text.add("data", data) }
            if let path { text.add("path", path) }
            text.add("sha256", sha256)
            text.add("size", size)
            if let status { text.add("status", status) }
            if let fields { text.add("fields", fields) }
            return text.text
        }
    }

    static func decode<T: Decodable>(_ type: T.Type, _ line: [UInt8]) -> T? {
        try? JSONDecoder().decode(type, from: Data(line))
    }
}

/// An object of JSON as `json.dumps(…, separators=(",", ":"), ensure_ascii=False)` of Python writes it, so that the
/// two tools that make packages write the same bytes.
struct CanonicalJSON {
    private var members: [String] = []

    var text: String { "{" + members.joined(separator: ",") + "}" }

    mutating func add(_ name: String, _ value: String) { members.append(Self.quote(name) + ":" + Self.quote(value)) }
    mutating func add(_ name: String, _ value: some BinaryInteger) { members.append(Self.quote(name) + ":\(value)") }
    mutating func add(_ name: String, _ value: CanonicalJSON) { members.append(Self.quote(name) + ":" + value.text) }

    mutating func add(_ name: String, _ pairs: [[String]]) {
        let lists = pairs.map { "[" + $0.map(Self.quote).joined(separator: ",") + "]" }
        members.append(Self.quote(name) + ":[" + lists.joined(separator: ",") + "]")
    }

    static func quote(_ text: String) -> String {
        var result = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": result += "\\\""
            case "\\": result += "\\\\"
            case "\n": result += "\\n"
            case "\r": result += "\\r"
            case "\t": result += "\\t"
            case "\u{8}": result += "\\b"
            case "\u{C}": result += "\\f"
            case "\0"..<" ":
                let digits = String(scalar.value, radix: 16)
                result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }
}
