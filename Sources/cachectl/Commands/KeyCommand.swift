import ArgumentParser
import CachectlCore
import Larder
import SystemPackage

/// `key`: keys of encrypted stores.
struct KeyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "key",
        abstract: "Make a key for encrypted stores, or change the key of a store.",
        discussion: """
            A store is encrypted if it is made with a key, and then every command needs that key: --key-file, or one of \
            the variables LARDER_KEY_FILE (a file), LARDER_KEY (64 hexadecimal digits) and LARDER_PASSPHRASE. Without \
            the key nothing in the store can be read, so keep a copy of it.
            """,
        subcommands: [CreateKeyCommand.self, ChangeKeyCommand.self])
}

/// `key create`: writes a random key to a file.
struct CreateKeyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "create", abstract: "Write a random key to a new file that only you can read.")

    @Argument(help: ArgumentHelp("The new file.", valueName: "file")) var file: String

    func run() throws {
        do {
            try EncryptionKey.random().save(to: FilePath(file))
        } catch let error as LarderError where error.cause as? Errno == .fileExists {
            throw CommandError(
                .cannotCreate, "\(file) exists, and a key is never overwritten: choose another name", path: error.path)
        } catch let error as LarderError {
            throw CommandError(.cannotCreate, "cannot create \(file)", path: error.path, cause: error.cause)
        }
    }
}

/// `key change`: gives a store another key.
struct ChangeKeyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "change",
        abstract: "Give an encrypted store another key.",
        discussion: """
            The old key is given as to every command, the new one by --new-key-file or by LARDER_NEW_KEY_FILE, \
            LARDER_NEW_KEY or LARDER_NEW_PASSPHRASE. It takes no longer for a large store, and other processes may use \
            the store meanwhile. What is stored stays sealed with the same data key: someone with the old key and an \
            old copy of the store's file 'encryption' can still read it. If the old key is known to others, remove the \
            store and make another one.
            """)

    @OptionGroup var options: StoreOptions

    @Option(help: ArgumentHelp("File with the new key.", valueName: "path")) var newKeyFile: String?

    func run() throws {
        guard let old = try options.flags.key() else {
            throw LarderError(.invalidArgument, "the key of the store is missing: see 'cachectl key change --help'")
        }
        guard let new = try KeySource.key(file: newKeyFile, .new) else {
            throw LarderError(
                .invalidArgument,
                "the new key is missing: give it with --new-key-file, see 'cachectl key change --help'")
        }
        try options.requireStore()
        try Store.changeKey(at: options.path, from: old, to: new)
    }
}
