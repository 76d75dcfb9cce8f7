#if LarderObjectsGRPC
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
            var users: [CheckedUser]
        }

        private struct User: Decodable {
            var name: String
            /// Either this, or its SHA-256.
            var password: String?
            var sha256: String?
            var right: ObjectAccess.Right
            var prefixes: [String]?

            enum CodingKeys: String, CodingKey, CaseIterable {
                case name, password, sha256, right, prefixes
            }
        }

        /// Any name of a member.
        private struct Member: CodingKey {
            var stringValue: String
            var intValue: Int? { nil }

            init(stringValue: String) { self.stringValue = stringValue }
            init?(intValue: Int) { nil }
        }

        /// A user whose members are all known: what is misspelled would give more rights than meant.
        private struct CheckedUser: Decodable {
            let user: User

            init(from decoder: any Decoder) throws {
                let members = try decoder.container(keyedBy: Member.self).allKeys.map(\.stringValue)
                let known = User.CodingKeys.allCases.map(\.rawValue)
                if let unknown = members.first(where: { !known.contains($0) }) {
                    throw Problem(text: "'\(unknown)' is not one of \(known.joined(separator: ", "))")
                }
                guard members.contains("right") else {
                    throw Problem(text: "a user has no 'right': none, read or write")
                }
                do {
                    user = try User(from: decoder)
                } catch {
                    throw Problem(text: "a user has members that are not valid: 'right' must be none, read or write")
                }
            }
        }

        private struct Problem: Error {
            let text: String
        }

        /// Reads a file.
        /// - Throws: `data`, with path and user, for what is not valid.
        static func read(_ path: FilePath) throws -> [ObjectAccess.User] {
            let bytes = try FileInput.bytes(of: path)
            let file: File
            do {
                file = try JSONDecoder().decode(File.self, from: Data(bytes))
            } catch let problem as Problem {
                throw CommandError(.data, "\(path): \(problem.text)", path: path)
            } catch {
                throw CommandError(
                    .data, "\(path): use {\"users\": [{\"name\": ..., \"password\": ..., \"right\": \"write\"}]}",
                    path: path)
            }
            var names: Set<String> = []
            return try file.users.map(\.user).map { user in
                func refusal(_ text: String) -> CommandError {
                    CommandError(.data, "\(path): user '\(user.name)' \(text)", path: path)
                }
                guard !user.name.isEmpty else { throw refusal("has no name") }
                guard !user.name.contains(":") else { throw refusal("has a colon in its name") }
                guard names.insert(user.name).inserted else { throw refusal("appears twice") }
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
                    user.name, secret: secret, right: user.right, prefixes: user.prefixes ?? ["/"])
            }
        }
    }
#endif
