import ArgumentParser
import CachectlCore
import Larder
import SystemPackage

/// `StoreOptions` for commands that use a temporary store unless one is named.
struct ScratchOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Directory of the store. Default: a temporary one, removed at the end.", valueName: "path"))
    var store: String?

    @OptionGroup var flags: StoreFlags

    func validate() throws {
        if store?.isEmpty == true { throw ValidationError("--store is empty. Give the directory of a store.") }
    }

    /// The options with the named store, else with the store at `path`.
    func target(orIn path: @autoclosure () -> FilePath) -> StoreOptions {
        var options = StoreOptions()
        options.store = store ?? path().string
        options.flags = flags
        return options
    }
}
