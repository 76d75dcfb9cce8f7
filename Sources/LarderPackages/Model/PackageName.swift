import Larder

/// The names of packages.
enum PackageName {
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
    static func from(_ text: String) -> String {
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
