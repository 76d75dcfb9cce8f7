import Larder

/// The keys and tags of what packages have in a store. They begin with `larder:`, so that callers have none of them.
///
/// Each installation of a package is a *generation*, and has an identifier of 16 hexadecimal digits. Members are plain
/// responses under keys of their generation. They are found if the table of packages names it.
package enum PackageKeys {
    /// Claimed while packages are changed.
    package static let claim = Key("larder:packages")
    /// The pinned tag of all records: the table, rows of generations, lists, user data.
    package static let recordTag = "larder: records of packages"

    /// The table of packages (``PackageTable``). Each application version has its own.
    package static func table(_ version: ApplicationVersion?) -> Key {
        Key("larder:packages" + (version.map { " \($0)" } ?? ""))
    }

    package static let rowPrefix = "larder:generation "
    /// There from before the first entry of a generation until after the last: by it what a killed process left is
    /// found.
    package static func row(_ generation: String) -> Key { Key(rowPrefix + generation) }

    /// There from the commit of a generation that is kept from displacement: the pin of its members lasts as long. If
    /// they are displaced together, readers look it up first.
    package static func owner(_ generation: String) -> Key { Key("larder:p " + generation) }
    /// The tag of the members of a generation.
    package static func tag(_ generation: String) -> String { "larder:p " + generation }

    /// What the keys of a generation begin with, without ``owner(_:)``.
    package static func prefix(_ generation: String) -> String { "larder:p " + generation + " " }
    /// The key of a member, from that of its URL.
    package static func member(_ generation: String, _ key: Key) -> Key {
        Key(bytes: Array(prefix(generation).utf8) + key.bytes)
    }
    /// What the keys of members begin with whose URLs begin with `url`.
    package static func member(_ generation: String, _ url: String = "http") -> Key { Key(prefix(generation) + url) }
    /// The list of members.
    package static func list(_ generation: String) -> Key { Key(prefix(generation) + "list") }
    /// User data. An empty name: the prefix of all.
    package static func data(_ generation: String, _ name: String = "") -> Key {
        Key(prefix(generation) + "data " + name)
    }

    /// The generation that an entry belongs to; nil for any other key.
    package static func generation(of key: Key) -> String? {
        let start = Array("larder:p ".utf8)
        guard key.bytes.starts(with: start), key.bytes.count >= start.count + 16 else { return nil }
        return String(decoding: key.bytes[start.count..<(start.count + 16)], as: UTF8.self)
    }

    /// The URL of a member, or the beginning of one; nil for any other key.
    package static func url(ofMember key: Key) -> String? {
        let start = "larder:p 0123456789abcdef "
        guard key.bytes.starts(with: start.utf8.prefix(9)), key.bytes.count > start.utf8.count else { return nil }
        let url = String(decoding: key.bytes[start.utf8.count...], as: UTF8.self)
        return url.hasPrefix("http") ? url : nil
    }
}
