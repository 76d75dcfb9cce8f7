import Larder

/// Where in a directory tree the body of a key goes, and which key a file of a tree gets.
///
/// Two keys never share a path, and no path leaves the tree. `scheme://host/a/b` goes to `scheme/host/a/b` (`file:///a/b` to
/// `file/a/b`), any other key to `_keys/`, and what the file system cannot name to `_hashed/<SHA-256 of the key>`.
/// A component that `import` could have made is decoded, so that a tree comes back as it was; any other is
/// percent-encoded after a `%`, with which no decoded name starts.
package enum KeyPath {
    /// What a file system takes for a name.
    package struct Rules {
        /// Takes names of any bytes. APFS refuses what is not UTF-8, so such a name stays encoded there.
        var takesAnyBytes = true

        /// Those of the system's usual file system.
        package static var ofSystem: Rules {
            #if canImport(Darwin)
                Rules(takesAnyBytes: false)
            #else
                Rules()
            #endif
        }
    }

    /// Equal for names that a file system may take for the same: it may ignore case, and how accents are put together, as
    /// the equality of strings does.
    static func folded(_ components: [[UInt8]]) -> String {
        components.map { String(decoding: $0, as: UTF8.self).lowercased() }.joined(separator: "/")
    }

    /// The components of the path of `key`, none of them empty, `.`, `..`, or longer than 255 bytes.
    package static func components(of key: Key, _ rules: Rules = .ofSystem) -> [[UInt8]] {
        let name = { (component: [UInt8]) in Self.name(component, rules) }
        let parts = key.bytes.split(separator: slash, omittingEmptySubsequences: false).map(Array.init)
        // "scheme:", "", "host", path...
        guard parts.count >= 3, parts[1].isEmpty, let scheme = scheme(parts[0]) else {
            return checked([Array("_keys".utf8)] + parts.map(name), key)
        }
        var head = [scheme]
        if scheme != Array("file".utf8) {
            head.append(name(parts[2]))
        } else if !parts[2].isEmpty {
            // No scheme has a percent sign, so this cannot be taken for the path of another key.
            head = [Array("file%host".utf8), name(parts[2])]
        }
        return checked(head + parts[3...].map(name), key)
    }

    /// As above for the rest of a key after a base URL.
    package static func components(of key: Key, after base: Key, _ rules: Rules = .ofSystem) -> [[UInt8]] {
        let rest = Array(key.bytes.dropFirst(base.bytes.count))
        return checked(
            rest.split(separator: slash, omittingEmptySubsequences: false).map { name(Array($0), rules) }, key)
    }

    /// Where the body of an entry goes.
    /// - Parameters:
    ///   - key: of the entry, or the URL of a response that varies.
    ///   - base: cut off the key, where it is not nil.
    ///   - variant: the request fields that select a response that varies; nil for what does not.
    ///   - entry: the key of the entry.
    package static func components(of key: Key, after base: Key?, variant: [String]?, _ entry: Key) -> [[UInt8]] {
        var path = base.map { components(of: key, after: $0) } ?? components(of: key)
        guard let variant, path != hashed(key), let name = path.popLast() else {
            return variant == nil ? path : hashed(entry)
        }
        // Brackets are in no other name that starts with a percent sign, so no other key can get this path.
        let prefix =
            name.first == PercentCoding.percent
            ? name : [PercentCoding.percent] + PercentCoding.encode(name) { characters[Int($0)] }
        let fields = variant.map { PercentCoding.encode(Array($0.utf8)) { variantCharacters[Int($0)] } }
        path.append(prefix + Array(" [".utf8) + Array(fields.joined(separator: Array(", ".utf8))) + Array("]".utf8))
        return checked(path, entry)
    }

    /// Where a body goes whose own path cannot be: too long, a file where another key needs a directory, or a name that the
    /// file system takes for that of another key.
    static func hashed(_ key: Key) -> [[UInt8]] {
        [Array("_hashed".utf8), Array(Digest.of(key.bytes).hexadecimal.utf8)]
    }

    /// The key of the file at `path`, relative to the tree whose base URL is `base`.
    package static func key(base: [UInt8], path: [UInt8]) -> Key {
        let components = path.split(separator: slash).map { PercentCoding.encode(Array($0)) }
        return Key(bytes: base + components.joined(separator: [slash]))
    }

    /// `file:///absolute/directory/` for an absolute path.
    package static func base(directory: [UInt8]) -> [UInt8] {
        var base = key(base: Array("file:///".utf8), path: directory).bytes
        if base.last != slash { base.append(slash) }
        return base
    }

    // MARK: Parts

    private static let slash = UInt8(ascii: "/")
    private static let dot = UInt8(ascii: ".")
    private static let characters = PercentCoding.characters("-._~!$&'()*+,;=:@?# ")
    /// Without the comma, which stands between two fields.
    private static let variantCharacters = PercentCoding.characters("-._~!$&'()*+;=:@ ")
    private static let maximumNameLength = 255
    private static let maximumPathLength = 3000

    /// RFC 3986, section 3.1, in lower case; nil for anything else.
    private static func scheme(_ part: [UInt8]) -> [UInt8]? {
        guard part.count > 1, part.last == UInt8(ascii: ":"), let first = part.first, (97...122).contains(first) else {
            return nil
        }
        let scheme = part.dropLast()
        let isValid = scheme.allSatisfy { byte in
            (97...122).contains(byte) || (48...57).contains(byte)
                || [UInt8(ascii: "+"), UInt8(ascii: "-"), dot].contains(byte)
        }
        return isValid ? Array(scheme) : nil
    }

    /// One component as the name of a file.
    private static func name(_ component: [UInt8], _ rules: Rules) -> [UInt8] {
        let decoded = PercentCoding.decode(component)
        if let first = decoded.first, first != PercentCoding.percent, decoded != [dot], decoded != [dot, dot],
            !decoded.contains(0), !decoded.contains(slash),
            rules.takesAnyBytes || String(validating: decoded, as: UTF8.self) != nil,
            PercentCoding.encode(decoded) == component
        {
            return decoded
        }
        return [PercentCoding.percent]
            + PercentCoding.encode(component) { characters[Int($0)] }
    }

    private static func checked(_ components: [[UInt8]], _ key: Key) -> [[UInt8]] {
        let length = components.reduce(0) { $0 + $1.count + 1 }
        let fits = length <= maximumPathLength && components.allSatisfy { !$0.isEmpty && $0.count <= maximumNameLength }
        return fits && !components.isEmpty ? components : hashed(key)
    }
}
