import ArgumentParser
import CachectlCore
import Larder
import LarderPackages
import SystemPackage

/// `package list`.
struct PackageListCommand: ParsableCommand {
    static let configuration = CommandConfiguration(commandName: "list", abstract: "List the installed packages.")

    @OptionGroup var options: StoreOptions

    func run() throws {
        try options.withStore(.reading) { store in
            let packages = try Blocking.run { try await PackageStore(store).packages() }
            var table = Table(
                [.left, .left, .left, .left, .right, .right],
                header: ["name", "version", "state", "mode", "members", "bytes"])
            for package in packages {
                table.add(
                    package.name, package.version.isEmpty ? "-" : package.version, package.state.rawValue,
                    package.mode.rawValue, Render.count(package.memberCount),
                    Render.size(ByteCount(package.memberBytes)))
            }
            try options.print(packages.map(PackageJSON.init), orText: packages.isEmpty ? "" : table.text)
        }
    }
}

/// `package show NAME`.
struct PackageShowCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show", abstract: "Show an installed package, its members or its user data.")

    @OptionGroup var options: StoreOptions

    @Argument(help: "The name of the package.")
    var name: String

    @Flag(help: "List the members: URL, length and SHA-256, as they were installed.")
    var members = false

    @Option(help: ArgumentHelp("Write the user data of this name to standard output.", valueName: "name"))
    var data: String?

    func run() throws {
        try options.withStore(.reading) { store in
            let packages = PackageStore(store)
            let (name, wanted) = (name, data)
            if let wanted {
                guard let body = try Blocking.run({ try await packages.data(wanted, of: name) }) else {
                    throw CommandError(.found, "package '\(name)' has no user data '\(Key(wanted))'")
                }
                var sink = OutputSink(isForced: true)
                var offset: Int64 = 0
                while offset < body.length.bytes {
                    let end = min(offset + 1 << 20, body.length.bytes)
                    try body.bytes(in: offset..<end).withUnsafeBytes { try sink.write($0) }
                    offset = end
                }
                return
            }
            guard let package = try Blocking.run({ try await packages.package(name) }) else {
                throw PackageError(.notInstalled, "there is no installed package '\(name)'")
            }
            if members {
                let asJSON = options.json
                return try Blocking.run {
                    try await packages.forEachMember(of: name) { member in
                        try Output.write(
                            asJSON
                                ? JSON.line(MemberJSON(member))
                                : "\(member.digest.hexadecimal)  \(member.length)  \(member.url)\n")
                    }
                }
            }
            let names = try Blocking.run { try await packages.dataNames(of: name) }
            try options.print(
                ShowJSON(package: PackageJSON(package), data: names), orText: Self.text(package, names))
        }
    }

    private static func text(_ package: InstalledPackage, _ data: [String]) -> String {
        let facts = PackageJSON(package)
        var table = Table([.left, .left])
        table.add("name", facts.name)
        table.add("version", facts.version.isEmpty ? "-" : facts.version)
        table.add("state", facts.state)
        table.add("mode", facts.mode)
        table.add("source", facts.source)
        table.add("SHA-256", facts.archiveSHA256)
        table.add("created", facts.created ?? "-")
        table.add("installed", facts.installed)
        table.add("members", "\(Render.count(facts.members)), \(Render.exactSize(ByteCount(facts.bytes)))")
        table.add("signed with", facts.signer.map { $0 + (facts.isTrusted ? " (trusted)" : "") } ?? "-")
        for name in data { table.add("user data", name) }
        return table.text
    }
}

private struct ShowJSON: Encodable {
    let package: PackageJSON
    let data: [String]
}

private struct MemberJSON: Encodable {
    let url: String
    let sha256: String
    let bytes: Int64
    let status: Int

    init(_ member: PackageMember) {
        url = member.url
        sha256 = member.digest.hexadecimal
        bytes = member.length
        status = member.status
    }
}

/// `package verify NAME`.
struct PackageVerifyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify",
        abstract: "Check every member of an installed package.",
        discussion: """
            Exits 1 if a member is missing or damaged. Other responses for the same URLs do not count.
            """)

    @OptionGroup var options: StoreOptions

    @Argument(help: "The name of the package.")
    var name: String

    @Flag(help: "Read each body and compare it with its digest.")
    var deep = false

    func run() throws {
        Interruption.listen()
        try options.withStore(.reading) { store in
            let (name, deep) = (name, deep)
            let report = try Blocking.run { try await PackageStore(store).verify(name, isDeep: deep) }
            try options.print(ReportJSON(report), orText: Self.text(report))
            if !report.isWhole { throw CommandError.found }
        }
    }

    private static func text(_ report: PackageReport) -> String {
        if !report.hasList { return "the list of members is gone or damaged: install the package again\n" }
        var text =
            PackageReport.Finding.allCases.compactMap { finding in
                report.counts[finding].map { "\(Render.count($0)) \(finding.rawValue)" }
            }.joined(separator: ", ") + "\n"
        for problem in report.problems.prefix(20) { text += "  \(problem.finding.rawValue)  \(problem.url)\n" }
        return text
    }
}

private struct ReportJSON: Encodable {
    let isWhole: Bool
    let hasList: Bool
    let counts: [String: Int]
    let problems: [[String: String]]

    init(_ report: PackageReport) {
        isWhole = report.isWhole
        hasList = report.hasList
        counts = Dictionary(
            uniqueKeysWithValues: PackageReport.Finding.allCases.map { ($0.rawValue, report.counts[$0] ?? 0) })
        problems = report.problems.map { ["url": $0.url, "finding": $0.finding.rawValue] }
    }
}
