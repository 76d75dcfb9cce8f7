import Foundation
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
        if let path { return try EncryptionKey(contentsOf: path) }
        let environment = ProcessInfo.processInfo.environment
        let given = [variables.file, variables.key, variables.passphrase].filter { environment[$0] != nil }
        if given.count > 1 {
            throw LarderError(
                .invalidArgument, "\(given.joined(separator: " and ")) are both set: the store has one key")
        }
        if let file = environment[variables.file] { return try EncryptionKey(contentsOf: file) }
        if let digits = environment[variables.key] {
            guard let key = EncryptionKey(hexadecimal: digits) else {
                throw LarderError(.invalidArgument, "\(variables.key) is not 64 hexadecimal digits")
            }
            return key
        }
        return try environment[variables.passphrase].map { try EncryptionKey(passphrase: $0) }
    }
}
