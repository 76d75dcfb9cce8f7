import ArgumentParser
import CachectlCore
import Larder
import LarderPackages
import SystemPackage

/// `package remove NAME`.
struct PackageRemoveCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove", abstract: "Remove an installed package, with or without its members.")

    @OptionGroup var options: StoreOptions

    @Argument(help: "The name of the package.")
    var name: String

    @Flag(help: "Leave the responses in the store, as if they had come over the network.")
    var keepMembers = false

    func run() throws {
        try options.withStore(.changing) { store in
            let (name, keepMembers) = (name, keepMembers)
            let package = try Blocking.run {
                try await PackageStore(store).remove(name, keepsMembers: keepMembers)
            }
            try options.print(PackageJSON(package), orText: "\(package.name): removed\n")
        }
    }
}

/// `package export`: an archive of responses that are in the store.
struct PackageExportCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Create a package from responses in the store.",
        usage: "cachectl package export [<archive>] [<options>]",
        discussion: """
            Options that select entries can be combined. Packs complete responses to GET that do not vary, \
            and lists the others. Leaves out Set-Cookie.
            """)

    @OptionGroup var options: StoreOptions

    @Argument(
        help: "The archive; --output names it, too. Default: \(PackageOutputOptions.standard).", completion: .file())
    var archive: String?

    @OptionGroup var selecting: SelectionOptions

    @Flag(help: "Pack every response.")
    var all = false

    @OptionGroup var output: PackageOutputOptions

    func validate() throws {
        if all == selecting.isGiven {
            throw ValidationError("Give either --all or options that select entries.")
        }
        if let archive, output.output != nil {
            throw ValidationError("Give the archive once: '\(archive)', or --output.")
        }
    }

    func run() throws {
        Interruption.listen()
        let packing = try output.options(defaultForm: .fourFields)
        let name = archive ?? output.output ?? PackageOutputOptions.standard
        try options.withStore(.reading) { store in
            let selection = selecting.selection(at: store.now) ?? .all
            let summary = try Blocking.run {
                try await PackageStore(store).export(selection, to: FilePath(name), packing)
            }
            try options.print(
                SummaryJSON(summary, name), orText: SummaryJSON.text(summary, name))
        }
    }
}
