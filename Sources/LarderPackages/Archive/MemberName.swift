/// The names of members.
enum MemberName {
    static let longest = 4_096
    /// The longest URL of a response, in bytes.
    static let longestURL = 16_384

    /// The reason to refuse a name; nil for a good one. This code never unpacks to such a path, but other recipients of
    /// the archive would, and a name that lies about its place cannot be trusted.
    static func objection(_ name: [UInt8]) -> String? {
        if name.isEmpty { return "a member has no name" }
        if name.count > longest { return "the name has \(name.count) bytes; the most is \(longest)" }
        if String(validating: name, as: UTF8.self) == nil { return "the name is not UTF-8" }
        if name.contains(where: { $0 < 0x20 || $0 == 0x7F }) { return "the name has a control character" }
        if name[0] == UInt8(ascii: "/") { return "the name is an absolute path" }
        if name.contains(UInt8(ascii: "\\")) { return "the name has a backslash" }
        if name.count > 1, name[1] == UInt8(ascii: ":"),
            (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(name[0] | 0x20)
        {
            return "the name starts with a drive"
        }
        if name.split(separator: UInt8(ascii: "/")).contains(where: { $0.elementsEqual("..".utf8) }) {
            return "the name leads out of its directory"
        }
        if name.split(separator: UInt8(ascii: "/")).contains(where: { $0.elementsEqual(".".utf8) }) {
            return "the name has a part that means the directory itself"
        }
        return nil
    }
}
