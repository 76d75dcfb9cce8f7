import Larder

/// The keys and tags under which a store keeps its records of packages. None of these keys is or can be a URL.
enum PackageKeys {
    /// The pinned tag of all entries below except the leaders. No response can have it, because it contains spaces.
    static let ownTag = "larder: records of packages"
    /// Claimed while a package is installed or removed.
    static let claim = Key("larder:packages")

    static let recordPrefix = "larder:package "
    /// The record of an installed package.
    static func record(_ name: String) -> Key { Key(recordPrefix + name) }
    /// The tag of its members.
    static func tag(_ name: String) -> String { "larder:package " + name }
    /// Of a package that is displaced as a whole: what its members count with.
    static func leader(_ name: String) -> Key { Key("larder:package-state " + name) }

    static let rowPrefix = "larder:install "
    /// Of one installation: what its members count with until they are settled.
    static func row(_ id: String) -> Key { Key(rowPrefix + id) }
    /// The list of members of one installation.
    static func list(_ id: String) -> Key { Key("larder:package-list " + id) }
    static func dataPrefix(_ id: String) -> Key { Key("larder:package-data " + id + " ") }
    /// User data of one installation.
    static func data(_ id: String, _ name: String) -> Key { Key("larder:package-data " + id + " " + name) }

    /// Throws unless it can be the name of a package: 1 to 128 of `A-Z a-z 0-9 . _ + -`, not `.` first.
    static func validate(_ name: String) throws(PackageError) {
        let isValid =
            (1...128).contains(name.utf8.count) && !name.hasPrefix(".") && name.utf8.allSatisfy(isAllowed)
        if isValid { return }
        throw PackageError(
            .invalidName,
            "'\(Key(name))' is not the name of a package: it has 1 to 128 letters, digits and . _ + -, and no dot first"
        )
    }

    /// A name made of any text, such as that of a file.
    static func name(from text: String) -> String {
        let allowed = String(
            decoding: text.utf8.prefix(128).map { isAllowed($0) ? $0 : UInt8(ascii: "-") }, as: UTF8.self)
        let name = String(allowed.drop { $0 == "." })
        return name.isEmpty ? "package" : name
    }

    private static func isAllowed(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "+"),
            UInt8(ascii: "-"):
            true
        default: false
        }
    }
}
