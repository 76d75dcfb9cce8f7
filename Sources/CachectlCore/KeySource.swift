import Larder
import SystemPackage

/// Where a command has the key of an encrypted store from: a file, or the environment. Arguments are shown to every
/// user of the machine (ps(1)), so none holds a key.
package enum KeySource {
    /// The variables of the environment: a file with a key; 64 hexadecimal digits; a passphrase.
    package struct Variables {
        let file: String
        let key: String
        let passphrase: String

        /// For the key of the store.
        package static let current = Variables(
            file: "LARDER_KEY_FILE", key: "LARDER_KEY", passphrase: "LARDER_PASSPHRASE")
        /// For the key that it gets.
        package static let new = Variables(
            file: "LARDER_NEW_KEY_FILE", key: "LARDER_NEW_KEY", passphrase: "LARDER_NEW_PASSPHRASE")
    }

    /// The key; nil if there is none.
    /// - Parameter path: the file that the command names, before which the environment stands back.
    package static func key(file path: String?, _ variables: Variables = .current) throws -> EncryptionKey? {
        if let path {
            // It is not printed: an error would be, and kept in logs.
            if EncryptionKey(hexadecimal: path) != nil {
                throw LarderError(.invalidArgument, "the name of a file with the key is needed, not the key itself")
            }
            return try EncryptionKey(contentsOf: path)
        }
        let all: [String] = [variables.file, variables.key, variables.passphrase]
        let names = all.filter { getenv($0) != nil }
        if names.count > 1 {
            throw LarderError(.invalidArgument, "\(names.joined(separator: " and ")) are set: a store has one key")
        }
        guard let name = names.first else { return nil }
        // Not by way of `ProcessInfo`, which makes one text of all that is not UTF-8.
        guard let value = getenv(name).flatMap({ String(validatingCString: $0) }) else {
            throw LarderError(.invalidArgument, "\(name) is not UTF-8")
        }
        if value.isEmpty { throw LarderError(.invalidArgument, "\(name) is set and empty") }
        switch name {
        case variables.file: return try EncryptionKey(contentsOf: value)
        case variables.passphrase: return try EncryptionKey(passphrase: value)
        default:
            guard let key = EncryptionKey(hexadecimal: value) else {
                throw LarderError(.invalidArgument, "\(name) is not 64 hexadecimal digits")
            }
            return key
        }
    }
}
