import Larder

/// What the path of a request names.
package enum ObjectName: Sendable, Equatable {
    /// A blob, by its content: `/cas/SHA256`, with any prefix.
    case blob(Digest)
    /// The result of an action: `/ac/` and 64 hexadecimal digits, with any prefix, which is part of the key.
    case result(Key)
    /// An object under a name of the client's choice.
    case file(Key)
    /// A directory. There are none; every path that ends in a slash stands for the objects below it.
    case collection(String)
    /// An artifact of Turborepo: `/v8/artifacts/HASH`.
    case artifact(Key)
    /// `POST /v8/artifacts`, `/v8/artifacts/events` and `/v8/artifacts/status`.
    case artifacts(String)
    /// A record of Nx: `/v1/cache/HASH`.
    case record(Key)
    /// `/status`
    case status

    /// Why a path names nothing.
    package struct Invalid: Error, Equatable {
        package let reason: String
    }
}

/// A path and what it names.
package struct ObjectPath: Sendable, Equatable {
    /// Decoded, without a query; rights are given to beginnings of it.
    package let text: String
    package let name: ObjectName

    /// Parses the target of a request in origin form (RFC 9112 section 3.2.1).
    package init(_ target: String) throws(ObjectName.Invalid) {
        let mark = target.utf8.firstIndex(of: UInt8(ascii: "?"))
        let query = mark.map { String(target[target.utf8.index(after: $0)...]) } ?? ""
        let segments = try Self.segments(mark.map { String(target[..<$0]) } ?? target)
        text = "/" + segments.joined(separator: "/")
        name = try Self.name(segments, text, query)
    }

    /// What has a digest for its name in an instance, as the Remote Execution API says it.
    /// - Parameters:
    ///   - instance: empty, or segments.
    ///   - kind: `ac` or `cas`.
    package init(instance: String, _ kind: String, _ digest: Digest) throws(ObjectName.Invalid) {
        let path = (instance.isEmpty ? "" : "/" + instance) + "/\(kind)/\(digest.hexadecimal)"
        let segments = try Self.segments(decoded: path)
        text = "/" + segments.joined(separator: "/")
        name = try Self.name(segments, text, "")
    }

    /// The digest in hexadecimal, if a target names a blob in its shortest form, `/cas/` and a digest.
    static func plainBlob(_ target: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
        guard target.count == 69, target[..<5].elementsEqual("/cas/".utf8) else { return nil }
        let name = UnsafeRawBufferPointer(rebasing: target[5...])
        return name.allSatisfy { 48...57 ~= $0 || 97...102 ~= $0 } ? name : nil
    }

    private static func segments(_ path: String) throws(ObjectName.Invalid) -> [String] {
        guard path.utf8.first == UInt8(ascii: "/") else { throw .init(reason: "a path begins with a slash") }
        guard path.utf8.count <= 4_096 else { throw .init(reason: "a path has at most 4,096 bytes") }
        guard let decoded = decoded(path) else { throw .init(reason: "the path is not well-formed UTF-8") }
        return try segments(decoded: decoded)
    }

    private static func segments(decoded: String) throws(ObjectName.Invalid) -> [String] {
        guard decoded.utf8.count <= 4_096 else { throw .init(reason: "a path has at most 4,096 bytes") }
        // By bytes: by characters it takes several times as long.
        var segments = decoded.utf8.dropFirst().split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
            .map { String(Substring($0)) }
        let isCollection = segments.last?.isEmpty == true
        // Clients join their base URL and a path with a slash too many: empty segments do not count.
        segments.removeAll { $0.isEmpty }
        for segment in segments {
            if segment == "." || segment == ".." { throw .init(reason: "the path contains '.' or '..'") }
            if segment.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) {
                throw .init(reason: "the path contains a control character")
            }
        }
        return isCollection ? segments + [""] : segments
    }

    /// RFC 3986 section 2.1. Nil for a percent sign without two digits, and for what is not UTF-8.
    private static func decoded(_ path: String) -> String? {
        if !path.utf8.contains(UInt8(ascii: "%")) { return path }
        var bytes: [UInt8] = []
        var rest = path.utf8[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard rest.count >= 2, let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16) else {
                return nil
            }
            bytes.append(value)
            rest = rest.dropFirst(2)
        }
        return String(validating: bytes, as: UTF8.self)
    }

    private static func name(
        _ segments: [String], _ text: String, _ query: String
    ) throws(ObjectName.Invalid) -> ObjectName {
        if segments.isEmpty || segments.last == "" { return .collection(text) }
        if segments == ["status"] { return .status }
        let count = segments.count
        if count >= 2, segments[count - 2] == "cas" {
            guard let digest = digest(segments[count - 1]) else {
                throw .init(reason: "a blob is named by 64 lower-case hexadecimal digits, its SHA-256")
            }
            return .blob(digest)
        }
        // ccache has directories of two hexadecimal digits, of which one is 'ac': what is below has fewer digits.
        if count >= 2, segments[count - 2] == "ac", segments[count - 1].utf8.count == 64 {
            guard digest(segments[count - 1]) != nil else {
                throw .init(reason: "an action is named by 64 lower-case hexadecimal digits, its SHA-256")
            }
            return .result(Key(text))
        }
        if let start = (0..<max(0, count - 1)).first(where: { segments[$0] == "v8" && segments[$0 + 1] == "artifacts" })
        {
            return try artifact(segments, after: start + 2, query)
        }
        if count >= 3, segments[count - 3] == "v1", segments[count - 2] == "cache" { return .record(Key(text)) }
        return .file(Key(text))
    }

    private static func artifact(_ segments: [String], after start: Int, _ query: String) throws(ObjectName.Invalid)
        -> ObjectName
    {
        let rest = Array(segments[start...])
        guard rest.count == 1, rest[0] != "status", rest[0] != "events" else {
            return .artifacts(rest.joined(separator: "/"))
        }
        // Each team has artifacts of its own.
        let team = ["teamId", "slug"].lazy.compactMap { value(of: $0, in: query) }.first ?? ""
        return .artifact(try artifact(rest[0], of: team, below: segments[..<start].joined(separator: "/")))
    }

    /// The key of an artifact.
    /// - Parameter prefix: the path of all artifacts, without a slash before it.
    static func artifact(_ hash: String, of team: String, below prefix: String) throws(ObjectName.Invalid) -> Key {
        // What a team is named must not lead to keys of another kind.
        guard isPlain(team), isPlain(hash), !hash.isEmpty, !["ac", "cas"].contains(team) else {
            throw .init(reason: "a team and an artifact are named by letters, digits, '-', '_' and '.'")
        }
        return Key("/\(prefix)/\(team)/\(hash)")
    }

    private static func isPlain(_ name: String) -> Bool {
        name != "." && name != ".."
            && name.utf8.allSatisfy {
                switch $0 {
                case 48...57, 65...90, 97...122, UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."): true
                default: false
                }
            }
    }

    /// The team that a target names; empty for none.
    static func team(_ target: String) -> String {
        guard let mark = target.utf8.firstIndex(of: UInt8(ascii: "?")) else { return "" }
        let query = String(target[target.utf8.index(after: mark)...])
        return ["teamId", "slug"].lazy.compactMap { value(of: $0, in: query) }.first ?? ""
    }

    private static func value(of name: String, in query: String) -> String? {
        for part in query.split(separator: "&") where part.hasPrefix(name + "=") {
            let value = part.dropFirst(name.count + 1)
            if !value.isEmpty { return String(value.prefix(256)) }
        }
        return nil
    }

    /// 64 hexadecimal digits in lower case.
    private static func digest(_ text: String) -> Digest? {
        text.utf8.contains { 65...70 ~= $0 } ? nil : Digest(hexadecimal: text)
    }
}
