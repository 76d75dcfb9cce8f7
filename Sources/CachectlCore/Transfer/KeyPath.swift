import Larder

/// Maps keys to paths in a directory tree, and files of a tree to keys.
///
/// Two keys never share a path, and no path leaves the tree. `scheme://host/a/b` becomes `scheme/host/a/b`
/// (`file:///a/b` becomes `file/a/b`), any other key goes to `_keys/`, and a key that the file system cannot name goes
/// to `_hashed/<SHA-256 of the key>`. A component that `import` could have made is decoded, so that import and export
/// reverse each other. Any other component is percent-encoded after a `%`; no decoded name starts with one.
package enum KeyPath {
    /// Which names a file system accepts.
    package struct Rules {
        /// Accepts names of any bytes. APFS refuses names that are not UTF-8, so they stay encoded there.
        var takesAnyBytes = true

        /// The rules of the system's usual file system.
        package static var ofSystem: Rules {
            #if canImport(Darwin)
                Rules(takesAnyBytes: false)
            #else
                Rules()
            #endif
        }
    }

    /// The same text for all paths that a file system may treat as equal: it may ignore case and Unicode normalisation,
    /// as the equality of strings does.
    static func folded(_ components: [[UInt8]]) -> String {
        components.map { String(decoding: $0, as: UTF8.self).lowercased() }.joined(separator: "/")
    }

    /// The components of the path of `key`. None is empty, `.`, `..`, or longer than 255 bytes.
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
            // A scheme has no percent sign, so no other key has this path.
            head = [Array("file%host".utf8), name(parts[2])]
        }
        return checked(head + parts[3...].map(name), key)
    }

    /// The same for the rest of a key after a base URL.
    package static func components(of key: Key, after base: Key, _ rules: Rules = .ofSystem) -> [[UInt8]] {
        let rest = Array(key.bytes.dropFirst(base.bytes.count))
        var path = rest.split(separator: slash, omittingEmptySubsequences: false).map { name(Array($0), rules) }
        if folded([path[0]]) == folded([hashedFolder]) { path[0].insert(PercentCoding.percent, at: 0) }
        return checked(path, key)
    }

    /// The components of the path of an entry's body.
    /// - Parameters:
    ///   - key: the key of the entry, or the URL of a variant.
    ///   - base: the prefix to remove from the key; nil for none.
    ///   - variant: the request fields that select a variant; nil for other entries.
    ///   - entry: the key of the entry.
    package static func components(of key: Key, after base: Key?, variant: [String]?, _ entry: Key) -> [[UInt8]] {
        var path = base.map { components(of: key, after: $0) } ?? components(of: key)
        guard let variant, path != hashed(key), let name = path.popLast() else {
            return variant == nil ? path : hashed(entry)
        }
        // No other name that starts with a percent sign has brackets, so no other key has this path.
        let prefix =
            name.first == PercentCoding.percent
            ? name : [PercentCoding.percent] + PercentCoding.encode(name) { characters[Int($0)] }
        let fields = variant.map { PercentCoding.encode(Array($0.utf8)) { variantCharacters[Int($0)] } }
        path.append(prefix + Array(" [".utf8) + Array(fields.joined(separator: Array(", ".utf8))) + Array("]".utf8))
        return checked(path, entry)
    }

    /// The path of a body that cannot have its own path: too long, a directory for another key, or a name that the file
    /// system treats as equal to that of another key.
    static func hashed(_ key: Key) -> [[UInt8]] {
        [hashedFolder, Array(Digest.of(key.bytes).hexadecimal.utf8)]
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

    /// No path after a base URL begins so: it gets a percent sign.
    private static let hashedFolder = Array("_hashed".utf8)
    private static let slash = UInt8(ascii: "/")
    private static let dot = UInt8(ascii: ".")
    private static let characters = PercentCoding.characters("-._~!$&'()*+,;=:@?# ")
    /// Without the comma, which separates fields.
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
