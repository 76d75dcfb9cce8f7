import CachectlCore
import Larder
import LarderObjects
import SystemPackage

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The file of `--users`.
///
///     {"users": [
///         {"name": "ci", "password": "...", "right": "write"},
///         {"name": "laptops", "sha256": "...", "right": "read", "prefixes": ["/team-a"]}]}
enum UsersFile {
    private struct File: Decodable {
        var users: [User]
    }

    private struct User: Decodable {
        var name: String
        /// Either this, or its SHA-256.
        var password: String?
        var sha256: String?
        var right: ObjectAccess.Right?
        var prefixes: [String]?
    }

    /// Reads a file.
    /// - Throws: `data`, with path and user, for what is not valid.
    static func read(_ path: FilePath) throws -> [ObjectAccess.User] {
        let bytes = try FileInput.bytes(of: path)
        let file: File
        do {
            file = try JSONDecoder().decode(File.self, from: Data(bytes))
        } catch {
            throw CommandError(
                .data, "\(path): use {\"users\": [{\"name\": ..., \"password\": ..., \"right\": \"write\"}]}",
                path: path)
        }
        var names: Set<String> = []
        return try file.users.map { user in
            func refusal(_ text: String) -> CommandError {
                CommandError(.data, "\(path): user '\(user.name)' \(text)", path: path)
            }
            guard !user.name.isEmpty, !user.name.contains(":") else { throw refusal("has no name, or a colon in it") }
            guard names.insert(user.name).inserted else { throw refusal("is there twice") }
            for prefix in user.prefixes ?? [] where !prefix.hasPrefix("/") {
                throw refusal("has the prefix '\(prefix)', which does not begin with a slash")
            }
            let secret: Digest
            switch (user.password, user.sha256) {
            case (let password?, nil) where !password.isEmpty: secret = Digest.of(Array(password.utf8))
            case (nil, let text?):
                guard let digest = Digest(hexadecimal: text) else { throw refusal("has no SHA-256 in 'sha256'") }
                secret = digest
            default: throw refusal("needs either 'password' or 'sha256'")
            }
            return ObjectAccess.User(
                user.name, secret: secret, right: user.right ?? .write, prefixes: user.prefixes ?? ["/"])
        }
    }
}
