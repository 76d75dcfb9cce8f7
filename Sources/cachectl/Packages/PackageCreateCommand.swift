import ArgumentParser
import CachectlCore
import Larder
import LarderHTTP
import LarderNIOTransport
import LarderPackages
import SystemPackage

/// `package create`: an archive of a folder, or of URLs.
struct PackageCreateCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "create",
        abstract: "Create a package from a folder or from URLs.",
        discussion: """
            With --folder each file becomes a response under the base URL. --from-cache fetches the URLs through the \
            cache and packs the stored responses. tools/afcpkg.py has the same options and writes the same manifests.
            """)

    @OptionGroup var options: StoreOptions

    @Option(help: ArgumentHelp("The folder with the files.", valueName: "folder"), completion: .directory)
    var folder: String?

    @Option(
        name: [.customLong("base-url"), .customLong("baseurl")],
        help: ArgumentHelp("The URL of the folder. Default: http://localhost.", valueName: "url"))
    var baseURL = "http://localhost"

    @Option(
        name: [.customLong("max-age"), .customLong("maxage")],
        help: ArgumentHelp("Seconds from Last-Modified to Expires. Default: no Expires.", valueName: "seconds"))
    var maxAge: Int64?

    @Flag(
        name: [.customLong("last-modified-file"), .customLong("lastmodifiedfile")],
        help: "Take Last-Modified from each file. Default: the time at which the package is made.")
    var lastModifiedFile = false

    @Option(
        name: [.customLong("last-modified-plus"), .customLong("lastmodifiedplus")],
        help: ArgumentHelp("Add seconds to Last-Modified.", valueName: "seconds"))
    var lastModifiedPlus: Int64?

    @Option(
        name: [.customLong("last-modified-minus"), .customLong("lastmodifiedminus")],
        help: ArgumentHelp("Subtract seconds from Last-Modified.", valueName: "seconds"))
    var lastModifiedMinus: Int64?

    @Option(
        name: [.customLong("max-item-size"), .customLong("maxItemFileSize")],
        help: ArgumentHelp("Leave out files with more bytes than this.", valueName: "bytes"))
    var maxItemSize: Int64?

    @Flag(name: [.customShort("a"), .customLong("all")], help: "Also pack files and folders that begin with a dot.")
    var all = false

    @Option(
        help: ArgumentHelp(
            "Leave out files whose path in the folder matches: * (any text, slashes too), ?, [abc], [!abc]. "
                + "Repeatable.",
            valueName: "pattern"))
    var exclude: [String] = []

    @Flag(inversion: .prefixedNo, help: "Write media types.")
    var mime = true

    @Option(
        help: ArgumentHelp(
            "Media types by extension, in the form of mime.types: a type, then its extensions, on each line.",
            valueName: "file"), completion: .file())
    var mimeMap: String?

    @Option(
        name: [.customLong("user-data"), .customLong("userdata")],
        help: ArgumentHelp("A folder of user data.", valueName: "folder"), completion: .directory)
    var userData: String?

    @Option(
        name: [.customLong("user-data-key"), .customLong("userdatakey")],
        help: ArgumentHelp("The key of the user data: the first part of their names.", valueName: "key"))
    var userDataKey: String?

    @Flag(help: "Fetch the URLs through the cache, and pack the stored responses.")
    var fromCache = false

    @Option(help: ArgumentHelp("With --from-cache: a URL; repeatable.", valueName: "url"))
    var url: [String] = []

    @Option(
        help: ArgumentHelp(
            "With --from-cache: a file with a URL on each line; - is standard input.", valueName: "file"),
        completion: .file())
    var urlList: String?

    @OptionGroup var output: PackageOutputOptions

    private var archiveName: String { output.output ?? PackageOutputOptions.standard }

    func validate() throws {
        if fromCache == (folder != nil) { throw ValidationError("Give either --folder or --from-cache.") }
        if fromCache, url.isEmpty, urlList == nil { throw ValidationError("--from-cache needs --url or --url-list.") }
        if !fromCache, !url.isEmpty || urlList != nil {
            throw ValidationError("--url and --url-list need --from-cache.")
        }
        if lastModifiedPlus != nil, lastModifiedMinus != nil {
            throw ValidationError("Give either --last-modified-plus or --last-modified-minus.")
        }
        for (name, value) in [
            ("--max-age", maxAge), ("--last-modified-plus", lastModifiedPlus),
            ("--last-modified-minus", lastModifiedMinus), ("--max-item-size", maxItemSize),
        ] where value.map({ !(0...100_000_000_000).contains($0) }) == true {
            throw ValidationError("\(name) is out of range. Use 0 ... 100000000000.")
        }
    }

    func run() throws {
        Interruption.listen()
        let packing = try output.options(defaultForm: mime ? .fourFields : .threeFields)
        let summary = try fromCache ? packCache(packing) : packFolder(packing)
        try options.print(
            SummaryJSON(summary, archiveName), orText: SummaryJSON.text(summary, archiveName))
    }

    private func packFolder(_ packing: PackageOptions) throws -> PackageSummary {
        guard let folder else { preconditionFailure("validated") }
        var files = FolderOptions(folder)
        files.baseURL = baseURL
        files.maxAge = maxAge
        files.usesFileTimes = lastModifiedFile
        files.lastModifiedOffset = lastModifiedPlus ?? lastModifiedMinus.map { -$0 } ?? 0
        files.maxItemBytes = maxItemSize
        files.includesHidden = all
        files.excludes = exclude
        files.hasMediaTypes = mime
        if let mimeMap {
            let text = try FileInput.bytes(of: FilePath(mimeMap), atMost: 16 << 20)
            files.mediaTypes = MediaTypes(table: String(decoding: text, as: UTF8.self))
        }
        files.dataFolder = userData
        files.dataKey = userDataKey
        let (archive, folderFiles) = (FilePath(archiveName), files)
        return try Blocking.run { try Package.create(archive, from: folderFiles, packing) }
    }

    /// Where the responses of a URL are: under its key, those of its variants, or that of a member of a package.
    private static func keys(of url: String, in store: Store) throws -> [Key] {
        guard let key = PackageStore.key(of: url) else { return [] }
        try store.flush()
        return try [key, StoredKeys.resolved(key, in: store)]
            + (store.attributes(of: key).flatMap { VariantList($0)?.keys } ?? [])
    }

    private func packCache(_ packing: PackageOptions) throws -> PackageSummary {
        var urls = url
        if let urlList {
            var text: [UInt8] = []
            _ = try FileInput(FilePath(urlList)).read { text += $0 }
            urls += String(decoding: text, as: UTF8.self).split(whereSeparator: \.isNewline)
                .map { $0.filter { !$0.isWhitespace } }.filter { !$0.isEmpty && !$0.hasPrefix("#") }
        }
        let archive = FilePath(archiveName)
        var packing = packing
        packing.writesEmpty = false
        return try options.withStore(.creating) { [packing] store in
            let transport = NIOTransport()
            let cache = HTTPCache(store: store, transport: transport)
            let progress = ProgressBar("fetching", isQuiet: options.json)
            var keys: Set<Key> = []
            var failed: [(url: String, why: String)] = []
            for (index, url) in urls.enumerated() {
                do {
                    let step = try FetchStep(url: url, method: "GET", fields: [], content: nil)
                    let response = try Blocking.run { try await cache.fetch(step.request) }
                    try FetchCommand.read(response.body) { _ in }
                    keys.formUnion(try Self.keys(of: url, in: store))
                } catch let error as FetchError {
                    failed.append((url, error.message))
                } catch let error as CommandError where error.status == .usage {
                    // Not a URL. One bad line must not cost the others.
                    failed.append((url, error.message ?? "not a valid URL"))
                }
                progress.update(Int64(index + 1), of: Int64(urls.count))
            }
            progress.finish()
            var summary = try Blocking.run { [keys] in
                await cache.drain()
                await transport.close()
                return try await PackageStore(store).export(.keys(keys), to: archive, packing)
            }
            for (url, why) in failed { summary.skipped[url] = "not fetched: " + why }
            let packed = Set(summary.urls)
            for url in urls where !failed.contains(where: { $0.url == url }) {
                let key = PackageStore.key(of: url)?.text ?? url
                let isNamed = summary.skipped.keys.contains { $0 == key || $0.hasPrefix(key + " ") }
                if !packed.contains(key), !isNamed { summary.skipped[url] = "not stored" }
            }
            if summary.members == 0 {
                throw CommandError(
                    .found,
                    "nothing was packed: "
                        + summary.skipped.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }.joined(
                            separator: "; "))
            }
            return summary
        }
    }
}

/// `package create --json`, `package export --json`.
struct SummaryJSON: Encodable {
    let archive: String
    let name: String
    let members: Int
    let unchanged: Int
    let bytes: Int64
    let dataFiles: Int
    let skipped: [String: String]
    let resources: [Resource]

    /// An entry of the manifest.
    struct Resource: Encodable {
        let url: String
        @Nullable var lastModified: Int64?
        @Nullable var expires: Int64?
        @Nullable var mimetype: String?
        @Nullable var filename: String?

        init(_ entry: ManifestEntry) {
            url = entry.url
            lastModified = entry.lastModified.map { $0.microseconds / 1_000_000 }
            expires = entry.expires.map { $0.microseconds / 1_000_000 }
            mimetype = entry.mediaType
            filename = entry.fileName
        }
    }

    init(_ summary: PackageSummary, _ archive: String) {
        self.archive = archive
        name = summary.name
        members = summary.members
        unchanged = summary.unchanged
        bytes = summary.bytes
        dataFiles = summary.dataFiles
        skipped = summary.skipped
        resources = summary.entries.map(Resource.init)
    }

    static func text(_ summary: PackageSummary, _ archive: String) -> String {
        var text = "\(archive): \(Render.count(summary.members, "response", "responses")) of package \(summary.name)"
        if summary.unchanged > 0 { text += ", \(Render.count(summary.unchanged)) of them unchanged" }
        text += ", \(Render.size(ByteCount(summary.bytes)))"
        if summary.dataFiles > 0 {
            text += ", \(Render.count(summary.dataFiles, "file", "files")) of user data"
        }
        text += "\n"
        if !summary.skipped.isEmpty {
            text += "left out: \(Render.count(summary.skipped.count))\n"
            for (what, why) in summary.skipped.sorted(by: { $0.key < $1.key }).prefix(20) {
                text += "  \(Key(what)): \(why)\n"
            }
        }
        return text
    }
}
