import HTTPCaching
import HTTPTypes
import Larder
import LarderHTTP

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The contents of an archive: its list of members, one of AFCache's manifests, or only the names of its files.
final class PackageContents {
    enum Item {
        case response(PlannedMember)
        case data(PlannedData)
    }

    private enum Form {
        case list(ZipReader.Member)
        case manifest(ZipReader.Member)
        case files
    }

    let archive: ZipReader
    private let form: Form
    private let options: InstallOptions
    private let rules: CacheRules
    let now: Instant
    /// Of the member list; nil without one.
    let header: MemberList.Header?
    /// The first line of the member list; nil without one.
    let headerLine: [UInt8]?
    /// The SHA-256 of the member list; nil without one.
    let listDigest: Digest?
    /// The key that signed it; nil if it is not signed.
    private(set) var signer: PackageKey?

    // So that each URL and each file is used once.
    private var urls: Set<Int> = []
    private var used: Set<UInt64> = []
    private var base: String?
    private var responseCount = 0

    init(_ archive: ZipReader, _ options: InstallOptions, rules: CacheRules, now: Instant) throws {
        self.archive = archive
        self.options = options
        self.rules = rules
        self.now = now
        base = options.baseURL
        if let list = try archive.member(MemberList.fileName) {
            form = .list(list)
            used.insert(list.index)
            // For programs that know AFCache's form only.
            for name in Manifest.fileNames { if let other = try archive.member(name) { used.insert(other.index) } }
            let (first, line, digest) = try Self.readAhead(list, archive)
            (header, headerLine, listDigest) = (first, line, digest)
        } else {
            let manifests = try Manifest.fileNames.compactMap { try archive.member($0) }
            if manifests.count > 1 {
                throw PackageError(
                    .duplicate, "there are two manifests", archive: archive.path, member: manifests[1].name)
            }
            form = manifests.first.map { .manifest($0) } ?? .files
            if let manifest = manifests.first { used.insert(manifest.index) }
            (header, headerLine, listDigest) = (nil, nil, nil)
        }
        signer = try readSigner()
    }

    /// Reads the list once, for its digest and its first line: what is signed is known before anything is stored.
    private static func readAhead(
        _ list: ZipReader.Member, _ archive: ZipReader
    ) throws -> (MemberList.Header, [UInt8], Digest) {
        var lines = try LineReader(list, in: archive)
        guard let first = try lines.next(), let header = MemberList.decode(MemberList.Header.self, first) else {
            throw PackageError(
                .badManifest, "the first line does not describe a package", archive: archive.path, member: list.name)
        }
        guard header.larder == 1 else {
            throw PackageError(
                .unsupported, "the list of members has version \(header.larder); only version 1 is supported",
                archive: archive.path, member: list.name)
        }
        guard MemberList.isVersion(header.version), MemberList.isVersion(header.created) else {
            throw lines.objection("has a version that is too long, or control characters in version or date")
        }
        while try lines.next() != nil {
            if lines.number > header.members + 1 {
                throw lines.objection("is more than the first line declares")
            }
        }
        return (header, first, lines.digest)
    }

    private func readSigner() throws -> PackageKey? {
        var found: PackageKey?
        if let listDigest, let member = try archive.member(MemberList.signatureName) {
            used.insert(member.index)
            guard
                let signature = MemberList.decode(PackageSignature.self, try archive.bytes(member, limit: 4_096)),
                let key = signature.signer(of: listDigest)
            else {
                throw PackageError(
                    .untrusted, "the signature does not match the list of members", archive: archive.path,
                    member: member.name)
            }
            found = key
        }
        if options.trustedKeys.isEmpty { return found }
        guard let found else {
            throw PackageError(.untrusted, "the package is not signed", archive: archive.path)
        }
        guard options.trustedKeys.contains(found) else {
            throw PackageError(
                .untrusted, "the package is signed with the key \(found), which is not trusted", archive: archive.path)
        }
        return found
    }

    /// Files that nothing has named. After `forEach`.
    var ignoredCount: Int { max(0, archive.fileCount - used.count) }

    /// Runs `body` on each response and each file of user data.
    func forEach(_ body: (Item) throws -> Void) throws {
        responseCount = 0
        try forEachItem { item in
            if case .response = item { responseCount += 1 }
            try body(item)
        }
    }

    /// Throws for a package without responses, for example from a crawl without a network: as a new version of a
    /// package it would remove every response. Call it after `forEach`.
    /// - Parameter previous: the installed version, nil without one.
    func requireResponses(after previous: InstalledPackage?) throws {
        guard let previous, previous.memberCount > 0, responseCount == 0 else { return }
        throw PackageError(
            .badManifest,
            "the package has no responses and would remove every member of '\(previous.name)': remove that instead",
            archive: archive.path)
    }

    private func forEachItem(_ body: (Item) throws -> Void) throws {
        switch form {
        case .list(let list): try readList(list, body)
        case .manifest(let manifest): try readManifest(manifest, body)
        case .files:
            if archive.fileCount == 0 {
                throw PackageError(.badManifest, "the archive has neither files nor a manifest", archive: archive.path)
            }
            try readFiles(body)
        }
    }

    // MARK: The list of members

    private func readList(_ list: ZipReader.Member, _ body: (Item) throws -> Void) throws {
        var lines = try LineReader(list, in: archive)
        _ = try lines.next()
        let created = header.flatMap { Self.moment($0.created) }
        var count = 0
        while let text = try lines.next() {
            guard let line = MemberList.decode(MemberList.Line.self, text),
                (0...archive.limits.memberBytes.bytes).contains(line.size),
                let digest = Digest(hexadecimal: line.sha256), (line.url == nil) != (line.data == nil)
            else { throw lines.objection("does not describe a member") }
            count += 1
            let content = try content(line, lines)
            if let name = line.data {
                try take(name)
                try body(
                    .data(
                        PlannedData(
                            name: name, content: content, digest: digest, length: line.size, line: text)))
                continue
            }
            let head = try head(of: line, lines)
            let ownDate = head.headerFields[values: .date].first.flatMap {
                HTTPDate.parse(Array($0.utf8), now: now)
            }
            guard let url = line.url, let key = PackagedResponse.key(of: url, rules: rules) else {
                throw lines.objection("has no URL that can have a stored response")
            }
            try take(key, url)
            try body(
                .response(
                    PlannedMember(
                        key: key, url: url, head: head, date: min(ownDate ?? created ?? now, now),
                        stated: ownDate ?? created, hasOwnDate: ownDate != nil, content: content, digest: digest,
                        length: line.size, line: text)))
        }
        if let header, header.members != count {
            throw lines.objection("is the last, but the list declares \(header.members) members, not \(count)")
        }
        if lines.digest != listDigest { throw lines.objection("has changed while the file was read") }
    }

    private func content(_ line: MemberList.Line, _ lines: LineReader) throws -> PlannedMember.Content {
        guard let path = line.path else {
            if header?.base != nil { return .installed }
            throw lines.objection("names no file")
        }
        let member = try use(path)
        if member.length != line.size {
            throw PackageError(
                .digestMismatch, "the member is \(member.length) bytes long; the list says \(line.size)",
                archive: archive.path, member: path)
        }
        return .archive(member)
    }

    private func head(of line: MemberList.Line, _ lines: LineReader) throws -> HTTPResponse {
        let status = line.status ?? 200
        // 206 and 304 are not whole responses, and 1xx not final ones.
        // 401, 407, 412 and 416 answer one request only.
        guard (200...599).contains(status), ![206, 304, 401, 407, 412, 416].contains(status) else {
            throw lines.objection("has status \(status)")
        }
        var head = HTTPResponse(status: HTTPResponse.Status(code: status))
        for field in line.fields ?? [] {
            guard field.count == 2, let name = HTTPField.Name(field[0]),
                !field[1].utf8.contains(where: { ($0 < 0x20 && $0 != 0x09) || $0 == 0x7F })
            else { throw lines.objection("has an invalid field") }
            head.headerFields.append(HTTPField(name: name, value: field[1]))
        }
        if [204, 205].contains(status), line.size > 0 { throw lines.objection("has content with status \(status)") }
        if head.headerFields.contains(.vary) { throw lines.objection("has a response that varies") }
        if rules.directives(of: head).noStore { throw lines.objection("has a response that must not be stored") }
        return head
    }

    // MARK: Manifests of AFCache

    private func readManifest(_ manifest: ZipReader.Member, _ body: (Item) throws -> Void) throws {
        var lines = try LineReader(manifest, in: archive)
        var parser = ManifestParser()
        // Lines without an entry cost time, too.
        let most = 4 * archive.fileCount + 1_000
        while let line = try lines.next() {
            if lines.number > most { throw lines.objection("is more than this number of files can need") }
            do {
                if let entry = try parser.take(line) { try body(.response(planned(entry, parser.baseURL, lines))) }
            } catch let error as ManifestParser.Objection {
                throw lines.objection(error.message)
            }
        }
        if let entry = parser.finish() { try body(.response(planned(entry, parser.baseURL, lines))) }
        try readData(body)
    }

    private func planned(_ entry: ManifestEntry, _ stated: String?, _ lines: LineReader) throws -> PlannedMember {
        guard let url = URLText.absolute(URLText.encoded(entry.url), below: base ?? stated),
            let key = PackagedResponse.key(of: url, rules: rules)
        else {
            throw PackageError(
                .badManifest, "it is not an HTTP URL" + (base == nil ? "; a base URL may help" : ""),
                archive: archive.path, member: entry.url)
        }
        try take(key, entry.url)
        let names =
            entry.fileName.map { [$0] }
            ?? URLText.memberNames(of: URLText.encoded(entry.url), below: stated)
        var found: ZipReader.Member?
        for name in names where found == nil { found = try archive.member(name) }
        guard let member = found else {
            throw PackageError(
                .missingMember, "it is in the manifest but not in the archive", archive: archive.path,
                member: names.first ?? entry.url)
        }
        try mark(member)
        var head = HTTPResponse(status: .ok)
        if let type = entry.mediaType { head.headerFields[.contentType] = type }
        if let date = entry.lastModified { head.headerFields[.lastModified] = Self.date(date) }
        if let date = entry.expires { head.headerFields[.expires] = Self.date(date) }
        return PlannedMember(
            key: key, url: url, head: head, date: now, stated: nil, hasOwnDate: false, content: .archive(member),
            digest: nil,
            length: member.length, line: nil)
    }

    private func readData(_ body: (Item) throws -> Void) throws {
        var found: [ZipReader.Member] = []
        try archive.forEach { if $0.name.utf8.starts(with: MemberList.dataFolder.utf8) { found.append($0) } }
        for member in found where !used.contains(member.index) {
            try mark(member)
            let name = String(member.name.utf8.dropFirst(MemberList.dataFolder.utf8.count))!
            try body(
                .data(
                    PlannedData(
                        name: name, content: .archive(member), digest: nil, length: member.length, line: nil)))
        }
    }

    // MARK: Files without a manifest

    private func readFiles(_ body: (Item) throws -> Void) throws {
        try archive.forEach { member in
            if member.name.utf8.starts(with: MemberList.dataFolder.utf8) || Self.isOfTool(member.name) { return }
            let path = URLText.encoded(path: member.name)
            let url = base.map { URLText.joined($0, path) } ?? "https://" + path
            guard let key = PackagedResponse.key(of: url, rules: rules) else {
                throw PackageError(
                    .badManifest, "there is no manifest, and the name does not begin with a host",
                    archive: archive.path, member: member.name)
            }
            try take(key, url)
            try mark(member)
            var head = HTTPResponse(status: .ok)
            if let type = MediaTypes().type(of: member.name) { head.headerFields[.contentType] = type }
            let modified = Timestamp(microseconds: Int64(member.modified) * 1_000_000)
            head.headerFields[.lastModified] = Self.date(modified)
            try body(
                .response(
                    PlannedMember(
                        key: key, url: url, head: head, date: now, stated: nil, hasOwnDate: false,
                        content: .archive(member),
                        digest: nil, length: member.length, line: nil)))
        }
        try readData(body)
    }

    /// Whether a file is not content: programs that make archives add it. macOS keeps what is not in a file in
    /// `__MACOSX`, jar(1) describes the archive in `META-INF`.
    private static func isOfTool(_ name: String) -> Bool {
        name.hasPrefix("__MACOSX/") || name.hasPrefix("META-INF/") || name == ".DS_Store"
            || name.hasSuffix("/.DS_Store")
    }

    // MARK: What is used

    private func use(_ path: String) throws -> ZipReader.Member {
        guard let member = try archive.member(path), !path.hasSuffix("/") else {
            throw PackageError(
                .missingMember, "it is listed but not in the archive", archive: archive.path,
                member: path)
        }
        try mark(member)
        return member
    }

    private func mark(_ member: ZipReader.Member) throws {
        if used.insert(member.index).inserted { return }
        throw PackageError(.duplicate, "two URLs name this file", archive: archive.path, member: member.name)
    }

    private func take(_ key: Key, _ url: String) throws {
        // A key has 65,536 bytes at most, and that of a member is longer than the URL.
        if url.utf8.count > MemberName.longestURL || key.bytes.count > MemberName.longestURL {
            throw PackageError(
                .tooLarge, "a URL has more than \(MemberName.longestURL) bytes", archive: archive.path,
                member: String(url.prefix(100)))
        }
        if urls.insert(key.hashValue).inserted { return }
        throw PackageError(.duplicate, "the manifest has this URL twice", archive: archive.path, member: url)
    }

    /// As above, for user data.
    private func take(_ name: String) throws {
        if let objection = MemberName.objection(Array(name.utf8)) {
            throw PackageError(.unsafeName, objection, archive: archive.path, member: name)
        }
        // Not of the text: two forms of one letter are two names, and one text.
        if urls.insert(Array("data \(name)".utf8).hashValue).inserted { return }
        throw PackageError(.duplicate, "the list has this user data twice", archive: archive.path, member: name)
    }

    /// Tells if the package has a response for a key. Call it after `forEach`.
    func has(_ key: Key) -> Bool { urls.contains(key.hashValue) }

    private static func date(_ moment: Timestamp) -> String {
        HTTPDate.format(Instant(milliseconds: moment.microseconds / 1_000))
    }

    /// A moment in the form of RFC 3339, in UTC and whole seconds.
    static func moment(_ text: String) -> Instant? {
        guard let date = try? Date(text, strategy: .iso8601) else { return nil }
        let seconds = date.timeIntervalSince1970
        guard seconds.isFinite, abs(seconds) < 1e12 else { return nil }
        return Instant(seconds: Int64(seconds))
    }
}
