import HTTPCaching
import Larder
import SystemPackage

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Writes a package of responses and user data from any source.
final class PackageWriter {
    /// A response to pack.
    struct Member {
        var url: String
        /// Nil: no place that follows from the URL; then it gets a name of its own.
        var path: String?
        var digest: Digest
        var length: Int64
        var status = 200
        var fields: [[String]]
        var lastModified: Timestamp?
        var expires: Timestamp?
        var mediaType: String?
        var source: any ZipWriter.Source
    }

    private let zip: ZipWriter
    private let options: PackageOptions
    private let created: Timestamp
    private var style: ManifestStyle
    private(set) var summary: PackageSummary

    private var entries: [ManifestEntry] = []
    private var lines: [MemberList.Line] = []
    /// Names of files, and of the folders that they are in. As bytes: two forms of one letter are two names.
    private var files: Set<[UInt8]> = []
    private var folders: Set<[UInt8]> = []
    /// The digest of each URL, and of each user data file, in the earlier version.
    private var base: (header: MemberList.Header.Base, digests: [[UInt8]: String])?

    init(_ path: FilePath, _ options: PackageOptions, style: ManifestStyle, at now: Timestamp) throws {
        let name = options.name ?? PackageName.from(path.stem ?? "")
        try PackageName.validate(name)
        if !options.hasList, options.signingKey != nil || options.base != nil {
            throw PackageError(
                .unsupported, "a package without a list of members cannot be signed or be an increment")
        }
        if !MemberList.isVersion(options.version) {
            throw PackageError(
                .badManifest, "the version of a package has 200 bytes at most, and no control characters")
        }
        self.options = options
        // Whole seconds, as everything that is written has them.
        let moment = options.created ?? now
        created = Timestamp(microseconds: moment.microseconds / 1_000_000 * 1_000_000)
        self.style = options.style ?? style
        summary = PackageSummary(name: name)
        if let base = options.base { self.base = try Self.read(FilePath(base), options.basePassword) }
        zip = try ZipWriter(path, password: options.password)
    }

    private static func read(
        _ path: FilePath, _ password: String?
    ) throws -> (MemberList.Header.Base, [[UInt8]: String]) {
        let archive = try ZipReader(path, password: password, limits: ArchiveLimits())
        guard let list = try archive.member(MemberList.fileName) else {
            throw PackageError(.missingBase, "the archive has no list of members", archive: path)
        }
        var reader = try LineReader(list, in: archive)
        guard let first = try reader.next(), let header = MemberList.decode(MemberList.Header.self, first) else {
            throw PackageError(.badManifest, "the first line does not describe a package", archive: path)
        }
        var digests: [[UInt8]: String] = [:]
        while let text = try reader.next() {
            guard let line = MemberList.decode(MemberList.Line.self, text) else {
                throw reader.objection("does not describe a member")
            }
            digests[Array((line.url ?? "data \(line.data ?? "")").utf8)] = line.sha256
        }
        return (MemberList.Header.Base(version: header.version, list: reader.digest.hexadecimal), digests)
    }

    /// Records something that is left out.
    func skip(_ what: String, _ why: String) {
        if summary.skipped.count < 1_000 { summary.skipped[what] = why }
    }

    // MARK: Members

    func add(_ member: Member) throws {
        let path = place(member)
        let isUnchanged = base?.digests[Array(member.url.utf8)] == member.digest.hexadecimal
        if member.status == 200, !member.url.contains("?") || style.form == .fiveFields {
            entries.append(
                ManifestEntry(
                    url: member.url, lastModified: member.lastModified, expires: member.expires,
                    mediaType: member.mediaType, fileName: path))
        }
        var line = MemberList.Line(
            url: member.url, path: path, sha256: member.digest.hexadecimal, size: member.length,
            status: member.status == 200 ? nil : member.status, fields: member.fields)
        if isUnchanged {
            line.path = nil
            summary.unchanged += 1
        } else {
            try zip.add(
                path, member.source, modified: (member.lastModified ?? created).microseconds / 1_000_000,
                isCompressed: Self.isWorthCompressing(member.mediaType))
            summary.bytes += member.length
        }
        lines.append(line)
        summary.members += 1
    }

    /// Adds a file of user data.
    func add(data name: String, _ source: any ZipWriter.Source, digest: Digest, modified: Timestamp) throws {
        let path = MemberList.dataFolder + name
        var line = MemberList.Line(
            data: name, path: path, sha256: digest.hexadecimal, size: source.length)
        if base?.digests[Array("data \(name)".utf8)] == digest.hexadecimal {
            line.path = nil
        } else {
            try zip.add(path, source, modified: modified.microseconds / 1_000_000)
        }
        lines.append(line)
        summary.dataFiles += 1
    }

    /// The name of a member: `HOST/PATH`, or one made of the URL's digest, where that cannot be the name of a file, or
    /// another member has it, as a file or as a folder.
    private func place(_ member: Member) -> String {
        if let path = member.path, isFree(Array(path.utf8)) {
            take(Array(path.utf8))
            return path
        }
        let host = URLText.hostAndPath(member.url)?.host ?? "localhost"
        let name = host + "/.larder/" + Digest.of(Array(member.url.utf8)).hexadecimal.prefix(32)
        take(Array(name.utf8))
        // Only this form says where the content is.
        style.form = .fiveFields
        return name
    }

    private func isFree(_ path: [UInt8]) -> Bool {
        if files.contains(path) || folders.contains(path) { return false }
        return !Self.folders(of: path).contains { files.contains($0) }
    }

    private func take(_ path: [UInt8]) {
        files.insert(path)
        folders.formUnion(Self.folders(of: path))
    }

    private static func folders(of path: [UInt8]) -> [[UInt8]] {
        path.indices.filter { path[$0] == UInt8(ascii: "/") }.map { Array(path[..<$0]) }
    }

    private static func isWorthCompressing(_ type: String?) -> Bool {
        guard let type else { return true }
        let packed = ["image/svg+xml", "image/bmp", "image/tiff"]
        if packed.contains(where: type.hasPrefix) { return true }
        return !["image/", "video/", "audio/", "font/woff", "application/zip", "application/gzip"].contains(
            where: type.hasPrefix)
    }

    // MARK: The end

    /// Writes the archive.
    func finish(baseURL: String?) throws -> PackageSummary {
        summary.entries = entries
        summary.urls = lines.compactMap(\.url)
        if lines.isEmpty, !options.writesEmpty { return summary }
        if style.form != .fiveFields { for index in entries.indices { entries[index].fileName = nil } }
        let manifest = Manifest(entries, baseURL: baseURL, style: style)
        let seconds = created.microseconds / 1_000_000
        try zip.add(Manifest.fileNames[0], BytesSource(Array(manifest.text.utf8)), modified: seconds)
        if options.hasList {
            let header = MemberList.Header(
                name: summary.name, version: options.version, created: Self.text(created), base: base?.header,
                members: lines.count)
            var text = header.line + "\n"
            for line in lines { text += line.line + "\n" }
            let bytes = Array(text.utf8)
            try zip.add(MemberList.fileName, BytesSource(bytes), modified: seconds)
            if let key = options.signingKey {
                let signature = try PackageSignature(Digest.of(bytes), key)
                try zip.add(
                    MemberList.signatureName, BytesSource(Array((signature.line + "\n").utf8)), modified: seconds)
            }
        }
        try zip.close()
        return summary
    }

    /// The moment in the form of RFC 3339, in UTC and whole seconds.
    static func text(_ moment: Timestamp) -> String {
        Date(timeIntervalSince1970: Double(moment.microseconds / 1_000_000)).formatted(.iso8601)
    }
}
