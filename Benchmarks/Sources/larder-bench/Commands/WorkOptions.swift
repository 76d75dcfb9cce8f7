import ArgumentParser
import SystemPackage

/// Where stores lie, for every command that makes some.
struct WorkOptions: ParsableArguments {
    @Option(help: "Directory in which to make a temporary one for the stores. Default: $TMPDIR or /var/tmp.")
    var path: String?

    var parent: FilePath? { path.map { FilePath($0) } }
}
