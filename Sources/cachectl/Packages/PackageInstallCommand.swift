import ArgumentParser
import CachectlCore
import Larder
import LarderPackages
import SystemPackage

extension DisplacementMode: ExpressibleByArgument {}
extension ConflictMode: ExpressibleByArgument {}

/// `package install ARCHIVE`.
struct PackageInstallCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "install",
        abstract: "Install a package, or another version of it.",
        discussion: """
            Readers see all members or none, even if the command is killed. Installing an archive that is already \
            installed changes nothing. Reads packages of cachectl and of AFCache, and plain zip archives of files in \
            HOST/PATH. A hostile or damaged archive installs nothing and exits 65.
            """)

    @OptionGroup var options: StoreOptions

    @Argument(help: "The archive.", completion: .file())
    var archive: String

    @Option(help: ArgumentHelp("Install under this name. Default: that of the package or the file.", valueName: "name"))
    var name: String?

    @Option(
        help: ArgumentHelp(
            "How displacement treats members: pin (they stay), members (one by one, like any entry) or whole (all "
                + "together). Default: as before; members for a new package.", valueName: "mode"))
    var mode: DisplacementMode?

    @Option(
        help: ArgumentHelp(
            "What to do if a URL already has a stored response: keep-newer, replace or keep-existing.",
            valueName: "mode"))
    var conflicts = ConflictMode.keepNewer

    @Option(help: ArgumentHelp("Source of the package, for the records. Default: the path.", valueName: "text"))
    var source: String?

    @Option(
        help: ArgumentHelp(
            "The password, in the first line of this file. Default: that in \(PackageSecrets.variable), if it is set.",
            valueName: "file"), completion: .file())
    var passwordFile: String?

    @Option(
        help: ArgumentHelp(
            "Require a signature that matches the Ed25519 public key in this file (PEM); repeatable: one match is "
                + "enough.", valueName: "file"), completion: .file())
    var trust: [String] = []

    @Option(
        help: ArgumentHelp(
            "Base URL for relative URLs, URLs with the scheme afcpkg (default: http://localhost), and files without a "
                + "manifest.",
            valueName: "url"))
    var baseURL: String?

    @Flag(help: "Accept a package whose signature differs from that of the installed one, or is missing.")
    var acceptSigner = false

    @Flag(help: "Install the archive again even if it is installed, to bring back displaced members.")
    var restore = false

    @Option(
        help: ArgumentHelp("Refuse archives with more members. Default: 1,000,000.", valueName: "n"))
    var maxMembers: Int?

    @Option(
        help: ArgumentHelp(
            "Refuse archives whose members have more bytes together. Default: 64GiB.", valueName: "size"),
        transform: SizeArgument.parse)
    var maxBytes: ByteCount?

    @Option(
        help: ArgumentHelp(
            "Refuse archives that unpack to more than this many times their size, and to more than 64 MiB. "
                + "Default: 100.", valueName: "n"))
    var maxRatio: Int?

    func validate() throws {
        for (name, value) in [("--max-members", maxMembers), ("--max-ratio", maxRatio)] {
            if let value, value < 1 { throw ValidationError("\(name) is out of range. Use 1 or more.") }
        }
    }

    func run() throws {
        Interruption.listen()
        var install = InstallOptions()
        install.name = name
        install.mode = mode
        install.conflicts = conflicts
        install.source = source
        install.password = try PackageSecrets.password(passwordFile)
        install.trustedKeys = try trust.map(PackageSecrets.publicKey)
        install.baseURL = baseURL
        install.acceptsOtherSigner = acceptSigner
        install.restoresMembers = restore
        if let maxMembers { install.limits.members = maxMembers }
        if let maxBytes { install.limits.totalBytes = maxBytes }
        if let maxRatio { install.limits.ratio = maxRatio }
        let progress = ProgressLine("installing", isQuiet: options.json)
        install.onProgress = { step in
            progress.update(
                step.bytes + Int64(step.members), of: step.totalBytes + Int64(step.totalMembers),
                Render.count(step.members, "member", "members"))
        }
        try options.withStore(.creating) { store in
            let result = try Blocking.run { [install] in
                try await PackageStore(store).install(FilePath(archive), install)
            }
            progress.finish()
            try options.print(InstallJSON(result), orText: Self.text(result))
        }
    }

    private static func text(_ result: InstallResult) -> String {
        let package = result.package
        let name = package.version.isEmpty ? package.name : "\(package.name) \(package.version)"
        if result.wasInstalled { return "\(name): installed already\n" }
        var parts = ["\(Render.count(result.added)) added"]
        for (count, what) in [
            (result.replaced, "replaced"), (result.unchanged, "unchanged"),
            (result.removed, "removed"), (result.missing, "missing"),
        ] where count > 0 { parts.append("\(Render.count(count)) \(what)") }
        var text = "\(name): \(Render.count(package.memberCount, "response", "responses")) "
        text += "(\(parts.joined(separator: ", "))), \(Render.size(ByteCount(package.memberBytes)))\n"
        if result.ignored > 0 {
            text += "\(Render.count(result.ignored, "file", "files")) of the archive that no manifest names: ignored\n"
        }
        return text
    }
}

private struct InstallJSON: Encodable {
    let package: PackageJSON
    let wasInstalled: Bool
    let added: Int
    let replaced: Int
    let unchanged: Int
    let removed: Int
    let missing: Int
    let ignored: Int

    init(_ result: InstallResult) {
        package = PackageJSON(result.package)
        wasInstalled = result.wasInstalled
        added = result.added
        replaced = result.replaced
        unchanged = result.unchanged
        removed = result.removed
        missing = result.missing
        ignored = result.ignored
    }
}

/// An installed package as JSON.
struct PackageJSON: Encodable {
    let name: String
    let version: String
    let state: String
    let mode: String
    let source: String
    let archiveSHA256: String
    @Nullable var created: String?
    let installed: String
    let members: Int
    let bytes: Int64
    let dataFiles: Int
    @Nullable var signer: String?
    let isTrusted: Bool

    init(_ package: InstalledPackage) {
        name = package.name
        version = package.version
        state = package.state.rawValue
        mode = package.mode.rawValue
        source = package.source
        archiveSHA256 = package.archiveDigest
        created = package.created
        installed = Timestamp(seconds: package.installed).description
        members = package.memberCount
        bytes = package.memberBytes
        dataFiles = package.dataCount
        signer = package.signer
        isTrusted = package.isTrusted
    }
}
