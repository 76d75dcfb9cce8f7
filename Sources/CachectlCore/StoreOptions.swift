import ArgumentParser
import Larder
import SystemPackage

/// How to open a store, and how to print results.
package struct StoreFlags: ParsableArguments {
    @Flag(help: "Print JSON.")
    package var json = false

    @Flag(help: "Open the store even if its directory belongs to another user, who can replace its content.")
    package var anyOwner = false

    @Option(
        help: ArgumentHelp(
            "File with the key of an encrypted store. Default: as LARDER_KEY_FILE, LARDER_KEY or LARDER_PASSPHRASE say.",
            valueName: "path"))
    package var keyFile: String?

    package init() {}

    /// The key of the store; nil if there is none.
    package func key() throws -> EncryptionKey? { try KeySource.key(file: keyFile) }
}

/// The options of every command: where the store is, and whether to print JSON.
package struct StoreOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Directory of the store. Default: larder in the platform's cache directory.", valueName: "path"))
    package var store: String?

    @OptionGroup package var flags: StoreFlags

    package init() {}

    package var json: Bool { flags.json }
    package var anyOwner: Bool { flags.anyOwner }

    package func validate() throws {
        if store?.isEmpty == true { throw ValidationError("--store is empty. Give the directory of a store.") }
    }

    /// The store's directory.
    package var path: FilePath { store.map { FilePath($0) } ?? Store.defaultPath }

    /// How a command uses the store.
    package enum Access {
        /// Changes nothing. The store must exist.
        case reading
        /// Changes the store, which must exist.
        case changing
        /// Changes the store, and creates it if it does not exist.
        case creating
    }

    /// Runs `body` with the store open, then closes it. If the last commit fails, the command fails.
    /// - Parameter rebuildsIndex: rebuilds a damaged index with every readable entry, rather than throw.
    package func withStore<R>(
        _ access: Access, budget bytes: ByteCount? = nil, rebuildsIndex: Bool = false,
        _ adjust: (inout Configuration) -> Void = { _ in },
        _ body: (Store) throws -> R
    ) throws -> R {
        // A command that changes a store leaves it in order, whatever signal comes.
        if access != .reading { Interruption.listen() }
        if access != .creating { try requireStore() }
        let isNew = access == .creating && (try? requireStore()) == nil
        var configuration = try configuration(access)
        adjust(&configuration)
        let store = try open(configuration, access, rebuildsIndex: rebuildsIndex)
        let result: R
        do {
            if let bytes { try store.setByteBudget(bytes) }
            result = try body(store)
            // Once: later runs find the store there. A server has closed it, and has given it a budget.
            if isNew, (try? store.budget())?.bytes == .unlimited {
                Output.note(
                    "the new store has no budget and may fill the disk: set one with 'cachectl budget --bytes 10GB'")
            }
        } catch {
            // Report the first error, not that of closing.
            try? store.close()
            throw error
        }
        try store.close()
        return result
    }

    /// The configuration to open the store with.
    package func configuration(_ access: Access) throws -> Configuration {
        var configuration = Configuration()
        configuration.isReadOnly = access == .reading
        configuration.allowsOtherOwner = anyOwner
        configuration.encryption = try flags.key()
        configuration.logger.logLevel = .error
        configuration.tellsUnlimited = false
        return configuration
    }

    private func open(_ configuration: Configuration, _ access: Access, rebuildsIndex: Bool) throws -> Store {
        do {
            return try Store(at: path, configuration)
        } catch let error as LarderError where error.code == .corruption && rebuildsIndex {
            let report = try Store.rebuildIndex(at: path, configuration)
            configuration.logger.warning(
                "the index was damaged and has been rebuilt",
                metadata: ["path": "\(path)", "error": "\(error)", "kept": "\(report.keptEntries)"], source: "cachectl")
            return try Store(at: path, configuration)
        } catch let error as LarderError where access == .creating && [.io, .invalidArgument].contains(error.code) {
            // A path where no store can be created is not a missing input.
            let status = ExitStatus(error)
            guard [.noInput, .usage, .inputOutput].contains(status), (try? requireStore()) == nil else { throw error }
            throw CommandError(.cannotCreate, error.message, path: error.path ?? path, cause: error.cause)
        }
    }

    /// Throws `noInput` unless the directory has the `FORMAT` file of a store: a command that changes a store must not
    /// create one at a mistyped path.
    package func requireStore() throws {
        do {
            if try Store.exists(at: path) { return }
        } catch {
            let cause = error.cause as? Errno
            if cause == .permissionDenied {
                throw CommandError(.noPermission, "no permission to read \(path)", path: path, cause: cause)
            }
            // A file is not a store, and nothing is below it.
            guard error.code == .invalidArgument || cause == .notDirectory else { throw error }
        }
        throw CommandError(.noInput, "there is no store at \(path): check --store, or put an entry first", path: path)
    }

    /// Prints `value` as JSON with `--json`, else the text.
    package func print(_ value: some Encodable, orText text: @autoclosure () -> String) throws {
        try Output.write(json ? JSON.text(value) : text())
    }
}

extension Store {
    /// Sets the byte limit, and keeps the other limits.
    package func setByteBudget(_ bytes: ByteCount) throws {
        var limits = try budget()
        limits.bytes = bytes
        try setBudget(limits)
    }

    /// As `setByteBudget`, for a program that serves: the limit holds from now on, and what is pinned or promised above
    /// it goes with time. That is said, and does not keep the program from starting.
    package func setByteBudget(ofServer bytes: ByteCount) throws {
        do {
            try setByteBudget(bytes)
        } catch let error as LarderError where error.code == .noSpace {
            guard try budget().bytes == bytes else { throw error }
            Output.note(
                "the budget of \(bytes) is set, but what is pinned, leased or promised takes more: "
                    + "new entries find no room until enough of that goes")
        }
    }
}
