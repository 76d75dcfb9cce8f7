import ArgumentParser
import Larder
import SystemPackage

/// How a store is opened, and what is printed of it.
package struct StoreFlags: ParsableArguments {
    @Flag(help: "Print JSON with stable keys.")
    package var json = false

    @Flag(help: "Open a store whose directory belongs to another user, who can replace what is in it.")
    package var anyOwner = false

    package init() {}
}

/// What every command takes: where the store is, and whether to print JSON.
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
        if store?.isEmpty == true { throw ValidationError("--store is empty: give the directory of a store.") }
    }

    /// The store's directory.
    package var path: FilePath { store.map { FilePath($0) } ?? Store.defaultPath }

    /// What a command does to the store.
    package enum Access {
        /// Changes nothing, the store has to be there.
        case reading
        /// Changes a store that has to be there.
        case changing
        /// Makes the store if it is missing.
        case creating
    }

    /// Runs `body` with the store open, and closes it; a failure to commit at the end is a failure of the command.
    /// - Parameter rebuildsIndex: where the index is damaged, keeps what can be read of it, rather than fail.
    package func withStore<R>(
        _ access: Access, budget bytes: ByteCount? = nil, rebuildsIndex: Bool = false,
        _ adjust: (inout Configuration) -> Void = { _ in },
        _ body: (Store) throws -> R
    ) throws -> R {
        if access != .creating { try requireStore() }
        var configuration = configuration(access)
        adjust(&configuration)
        let store = try open(configuration, access, rebuildsIndex: rebuildsIndex)
        let result: R
        do {
            if let bytes { try store.setByteBudget(bytes) }
            result = try body(store)
        } catch {
            // The first failure is the one to report.
            try? store.close()
            throw error
        }
        try store.close()
        return result
    }

    /// How the store is opened.
    package func configuration(_ access: Access) -> Configuration {
        var configuration = Configuration()
        configuration.isReadOnly = access == .reading
        configuration.allowsOtherOwner = anyOwner
        configuration.logger.logLevel = .error
        return configuration
    }

    private func open(_ configuration: Configuration, _ access: Access, rebuildsIndex: Bool) throws -> Store {
        do {
            return try Store(at: path, configuration)
        } catch let error as LarderError where error.code == .corruption && rebuildsIndex {
            let report = try Store.rebuildIndex(at: path, configuration)
            configuration.logger.warning(
                "the index was damaged and is rebuilt",
                metadata: ["path": "\(path)", "error": "\(error)", "kept": "\(report.keptEntries)"])
            return try Store(at: path, configuration)
        } catch let error as LarderError where access == .creating && [.io, .invalidArgument].contains(error.code) {
            // A path on which no store can be made is not a missing input.
            let status = ExitStatus(error)
            guard [.noInput, .usage, .inputOutput].contains(status), (try? requireStore()) == nil else { throw error }
            throw CommandError(.cannotCreate, error.message, path: error.path ?? path, cause: error.cause)
        }
    }

    /// Throws `noInput` unless the directory has a store's `FORMAT` file: a command that is to change a store must not make
    /// one out of a mistyped path.
    func requireStore() throws {
        var status = stat()
        if path.appending("FORMAT").withPlatformString({ lstat($0, &status) }) == 0 { return }
        let cause = Errno(rawValue: errno)
        if cause == .permissionDenied {
            throw CommandError(.noPermission, "no permission to look into \(path)", path: path, cause: cause)
        }
        if hasIndex {
            throw LarderError(
                .formatMismatch, "\(path) has lost its file FORMAT; the index is there and was not changed",
                remedy: .rebuildIndex, path: path)
        }
        throw CommandError(.noInput, "there is no store at \(path): check --store, or put something first", path: path)
    }

    private var hasIndex: Bool {
        var status = stat()
        return path.appending("index/data.mdb").withPlatformString { lstat($0, &status) } == 0
    }

    /// Prints `value` as JSON where that was asked for, else the text.
    package func print(_ value: some Encodable, orText text: @autoclosure () -> String) throws {
        try Output.write(json ? JSON.text(value) : text())
    }
}

extension Store {
    /// Changes the byte limit and leaves the others as they are.
    package func setByteBudget(_ bytes: ByteCount) throws {
        var limits = try budget()
        limits.bytes = bytes
        try setBudget(limits)
    }
}
