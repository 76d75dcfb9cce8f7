import ArgumentParser
import CachectlCore
import Larder
import LarderPackages
import SystemPackage

/// Passwords and keys, which come from files or the environment: arguments are visible to every user of the machine.
enum PackageSecrets {
    static let variable = "LARDER_PACKAGE_PASSWORD"

    /// The first line of a file; without a file the variable of the environment; nil if that is not set either.
    static func password(_ file: String?) throws -> String? {
        guard let file else { return getenv(variable).map { String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 } }
        let bytes = try FileInput.bytes(of: FilePath(file), atMost: 4_096)
        // Bytes: as text, CR LF is one character.
        var line = bytes.prefix { $0 != UInt8(ascii: "\n") }
        if line.last == UInt8(ascii: "\r") { line.removeLast() }
        guard !line.isEmpty, let password = String(validating: line, as: UTF8.self) else {
            throw CommandError(.data, "\(file) has no password in its first line", path: FilePath(file))
        }
        return password
    }

    static func publicKey(_ file: String) throws -> PackageKey {
        if let key = PackageKey(try text(file)) { return key }
        throw CommandError(
            .data, "\(file) has no Ed25519 public key: 'openssl pkey -in KEY -pubout' writes one", path: FilePath(file))
    }

    static func signingKey(_ file: String) throws -> PackageSigningKey {
        if let key = PackageSigningKey(try text(file)) { return key }
        throw CommandError(
            .data, "\(file) has no Ed25519 private key: 'openssl genpkey -algorithm ed25519' makes one",
            path: FilePath(file))
    }

    private static func text(_ file: String) throws -> String {
        String(decoding: try FileInput.bytes(of: FilePath(file), atMost: 65_536), as: UTF8.self)
    }
}

/// Options of commands that write an archive.
struct PackageOutputOptions: ParsableArguments {
    @Option(
        name: [.short, .customLong("output"), .customLong("outfile")],
        help: ArgumentHelp("The archive. Default: \(PackageOutputOptions.standard).", valueName: "file"),
        completion: .file())
    var output: String?

    static let standard = "afcache-archive.zip"

    @Option(help: ArgumentHelp("The name of the package. Default: that of the file.", valueName: "name"))
    var name: String?

    @Option(help: ArgumentHelp("The version of the package, at most 200 bytes of text.", valueName: "text"))
    var packageVersion = ""

    @Option(
        help: ArgumentHelp("Time of creation, in seconds since 1970. Default: now.", valueName: "seconds"))
    var created: Int64?

    @Option(
        help: ArgumentHelp(
            "Fields of AFCache's manifest: 3 (without media types), 4, or 5 (with file names).", valueName: "n"))
    var form: Int?

    @Flag(help: "End dates of the manifest with GMT+00:00, as AFCache's tools did.")
    var zoneOffset = false

    @Flag(inversion: .prefixedNo, help: "Write the list of members with their digests.")
    var list = true

    @Option(
        help: ArgumentHelp(
            "Make an increment: pack only what the archive of an earlier version does not have.", valueName: "archive"),
        completion: .file())
    var base: String?

    @Option(
        help: ArgumentHelp("Sign with the Ed25519 key in this file (PEM).", valueName: "file"), completion: .file())
    var sign: String?

    @Option(
        help: ArgumentHelp(
            "Encrypt with the password in the first line of this file. Default: that in "
                + "\(PackageSecrets.variable), if it is set.", valueName: "file"), completion: .file())
    var passwordFile: String?

    func validate() throws {
        if let form, ManifestStyle.Form(rawValue: form) == nil {
            throw ValidationError("--form: \(form) is not a form. Use 3, 4 or 5.")
        }
        if created.map({ !(0...253_402_300_799).contains($0) }) == true {
            throw ValidationError("--created is out of range. Use 0 ... 253402300799.")
        }
    }

    func options(defaultForm: ManifestStyle.Form) throws -> PackageOptions {
        var options = PackageOptions()
        options.name = name
        options.version = packageVersion
        options.created = created.map { Timestamp(microseconds: $0 * 1_000_000) }
        options.style = ManifestStyle(
            form.flatMap { ManifestStyle.Form(rawValue: $0) } ?? defaultForm, hasZoneOffset: zoneOffset)
        options.hasList = list
        options.base = base
        options.signingKey = try sign.map(PackageSecrets.signingKey)
        options.password = try PackageSecrets.password(passwordFile)
        options.basePassword = options.password
        return options
    }
}
