import ArgumentParser
import CachectlCore
import LarderPackages

/// `package`: archives of responses.
struct PackageCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "package",
        abstract: "Create, install and inspect packages: zip archives of responses.",
        discussion: """
            A package fills the cache before the cache has contacted any origin, so that 'cachectl fetch --offline' \
            and 'cachectl serve' answer with its members. Installing is a single step for readers: they see all \
            members or none. See docs/packages.md.
            """,
        subcommands: [
            PackageCreateCommand.self, PackageInstallCommand.self, PackageListCommand.self, PackageShowCommand.self,
            PackageVerifyCommand.self, PackageRemoveCommand.self, PackageExportCommand.self,
        ])

    /// Whether a command is one of these: its name in messages follows `package`.
    static func has(_ command: any ParsableCommand) -> Bool {
        configuration.subcommands.contains { $0 == type(of: command) }
    }
}

extension PackageError.Code {
    /// The exit status for an error of packages.
    var status: ExitStatus {
        switch self {
        case .notAnArchive, .damagedMember, .unsafeName, .notAFile, .duplicate, .tooLarge, .overlap, .badManifest,
            .missingMember, .digestMismatch:
            .data
        case .passwordRequired, .wrongPassword, .untrusted: .noPermission
        case .unsupported: .unavailable
        case .missingBase, .notInstalled: .found
        case .exceedsBudget: .noSpace
        case .invalidName: .usage
        case .busy: .temporary
        case .io: .inputOutput
        }
    }
}
