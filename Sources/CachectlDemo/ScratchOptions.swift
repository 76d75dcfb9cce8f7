import ArgumentParser
import CachectlCore
import Larder
import SystemPackage

/// `StoreOptions` for commands that make a store of their own unless one is named.
struct ScratchOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Directory of a store to use. Default: a temporary one, removed at the end.", valueName: "path"))
    var store: String?

    @OptionGroup var flags: StoreFlags

    func validate() throws {
        if store?.isEmpty == true { throw ValidationError("--store is empty: give the directory of a store.") }
    }

    /// The options with a store: the named one, else `path`.
    func target(orIn path: @autoclosure () -> FilePath) -> StoreOptions {
        var options = StoreOptions()
        options.store = store ?? path().string
        options.flags = flags
        return options
    }
}
