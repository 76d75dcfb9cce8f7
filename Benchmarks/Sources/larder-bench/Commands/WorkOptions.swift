import ArgumentParser
import SystemPackage

/// The place for stores, for every command that creates some.
struct WorkOptions: ParsableArguments {
    @Option(help: "The directory for the temporary directory of the stores. Default: $TMPDIR or /var/tmp.")
    var path: String?

    var parent: FilePath? { path.map { FilePath($0) } }
}
