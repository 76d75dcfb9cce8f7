import Larder

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The rights of clients to read and write the objects of a server.
public struct ObjectAccess: Sendable, Hashable {
    /// A level of access.
    public enum Right: String, Sendable, Hashable, CaseIterable, Comparable, Codable {
        /// Nothing.
        case none
        /// GET, HEAD and PROPFIND.
        case read
        /// Everything.
        case write

        /// Compares how much two rights allow.
        public static func < (a: Right, b: Right) -> Bool { a.rank < b.rank }

        private var rank: Int { Self.allCases.firstIndex(of: self) ?? 0 }
    }

    /// A user with a secret.
    public struct User: Sendable, Hashable {
        /// The name for basic credentials (RFC 7617). Objects that this user writes have the tag `user:NAME`.
        public var name: String
        /// SHA-256 of the password (RFC 7617), which is also accepted as a bearer token (RFC 6750).
        public var secret: Digest
        /// The right of the user below ``prefixes``. Default: write.
        public var right: Right
        /// The paths where the right applies, by whole segments: `/team-a` does not include `/team-ab`. Default: `/`,
        /// everywhere.
        public var prefixes: [String]

        /// Describes a user. Each parameter sets the property of its name.
        public init(_ name: String, secret: Digest, right: Right = .write, prefixes: [String] = ["/"]) {
            self.name = name
            self.secret = secret
            self.right = right
            self.prefixes = prefixes
        }
    }

    /// The users with secrets. Default: none.
    public var users: [User]
    /// The right of clients without credentials, everywhere. Default: write.
    public var anonymous: Right

    /// Each parameter sets the property of its name, and has the default that the property states.
    public init(users: [User] = [], anonymous: Right = .write) {
        self.users = users
        self.anonymous = anonymous
    }
}

/// The decision about a request, and the user it counts for.
package enum Admission: Equatable {
    /// - Parameter user: nil without credentials.
    case allowed(user: String?)
    /// Credentials are missing or wrong.
    case unauthorized
    /// The credentials do not give this right at this path.
    case forbidden
}

extension ObjectAccess {
    /// Decides whether a request may have a right at a path.
    ///
    /// - Parameter authorization: the field of the request.
    package func admission(_ authorization: String?, _ right: Right, at path: String) -> Admission {
        guard let authorization else {
            if anonymous >= right { return .allowed(user: nil) }
            return users.isEmpty ? .forbidden : .unauthorized
        }
        guard let user = user(authorization) else {
            // A client that sends what this server does not ask for is one without credentials.
            return users.isEmpty && anonymous >= right ? .allowed(user: nil) : .unauthorized
        }
        if user.right >= right, user.reaches(path) { return .allowed(user: user.name) }
        return anonymous >= right ? .allowed(user: user.name) : .forbidden
    }

    private func user(_ authorization: String) -> User? {
        let parts = authorization.split(separator: " ", maxSplits: 1)
        guard parts.count == 2 else { return nil }
        let value = parts[1].drop { $0 == " " }
        switch parts[0].lowercased() {
        case "bearer": return user(nil, secret: Array(value.utf8))
        case "basic":
            guard let text = Data(base64Encoded: String(value)), let colon = text.firstIndex(of: UInt8(ascii: ":"))
            else { return nil }
            return user(String(decoding: text[..<colon], as: UTF8.self), secret: Array(text[(colon + 1)...]))
        default: return nil
        }
    }

    /// Compares digests, so that timing reveals nothing about the secret.
    private func user(_ name: String?, secret: [UInt8]) -> User? {
        let digest = Digest.of(secret)
        return users.first { $0.secret == digest && (name == nil || $0.name == name) }
    }
}

extension ObjectAccess.User {
    fileprivate func reaches(_ path: String) -> Bool {
        prefixes.contains { prefix in
            // By bytes: keys differ where characters are only equivalent.
            let prefix = Array((prefix.hasSuffix("/") ? String(prefix.dropLast()) : prefix).utf8)
            let rest = path.utf8.dropFirst(prefix.count)
            return path.utf8.starts(with: prefix) && (rest.isEmpty || rest.first == UInt8(ascii: "/"))
        }
    }
}
