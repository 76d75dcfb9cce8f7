import HTTPCaching
import HTTPTypes
import Larder
import LarderHTTP
import SystemPackage

extension PackageStore {
    /// Packs stored responses: complete responses to GET that do not vary. The summary lists the entries that are left
    /// out.
    ///
    /// - Parameters:
    ///   - selection: selects entries by prefix, host, tag or anything else. Default: all.
    ///   - archive: the path of the archive; replaced if it exists, once the new one is whole.
    ///   - options: name, version, signature and so on.
    /// - Returns: a summary of the package.
    /// - Throws: ``PackageError``; `LarderError` of the store; `CancellationError` in a cancelled task.
    @discardableResult
    public func export(
        _ selection: Selection = .all, to archive: FilePath, _ options: PackageOptions = PackageOptions()
    ) async throws -> PackageSummary {
        try await performExport(selection, archive, options)
    }

    private static func member(
        _ url: String, _ entry: Attributes, _ response: StoredResponse, in store: Store
    ) -> PackageWriter.Member {
        let own: Set<HTTPField.Name> = [.setCookie, .contentLength, .vary]
        let fields = response.head.headerFields.filter { !own.contains($0.name) }
        func moment(_ name: HTTPField.Name) -> Timestamp? {
            response.head.headerFields[values: name].first.flatMap {
                HTTPDate.parse(Array($0.utf8), now: response.responseTime)
            }.map { Timestamp(microseconds: $0.milliseconds * 1_000) }
        }
        return PackageWriter.Member(
            url: url, path: path(url), digest: entry.digest, length: entry.length.bytes,
            status: response.head.status.code, fields: fields.map { [$0.name.rawName, $0.value] },
            lastModified: moment(.lastModified),
            // A lifetime that is stated in another way has the same end.
            expires: response.policy.lifetimeMilliseconds > 0
                ? Timestamp(microseconds: response.policy.freshUntil.milliseconds / 1_000 * 1_000_000)
                : moment(.expires),
            mediaType: response.head.headerFields[.contentType],
            source: BodySource(entry.key, entry.digest, length: entry.length.bytes, in: store))
    }

    /// `HOST/PATH`, where that is the name of a file that every system can have.
    private static func path(_ url: String) -> String? {
        guard !url.contains("?"), let (host, path) = URLText.hostAndPath(url), !path.hasSuffix("/") else { return nil }
        let parts = path.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
        guard !parts.isEmpty, parts.allSatisfy({ (1...200).contains($0.utf8.count) && $0 != "." && $0 != ".." }),
            path.utf8.count < 2_000, MemberName.objection(Array((host + path).utf8)) == nil
        else { return nil }
        return host + path
    }

    func performExport(
        _ selection: Selection, _ archive: FilePath, _ options: PackageOptions
    ) async throws -> PackageSummary {
        try await withStore { store, now in
            let writer = try PackageWriter(archive, options, style: ManifestStyle(.fourFields), at: now)
            var urls: Set<Int> = []
            let packages = try PackageTable(in: store)
            try store.forEach(selection) { entry in
                let memberURL = packages.url(ofMember: entry.key)
                if let memberURL, try !Self.isUsed(entry, memberURL, packages, in: store) { return }
                if memberURL == nil, entry.key.hasPrefix("larder:") || FormerPackages.isUnfinished(entry) { return }
                guard entry.key.text.contains("://"), let response = PackagedResponse.read(entry.metadata) else {
                    if PackagedResponse.isResponse(entry.metadata), !StoredKeys.isList(entry) {
                        writer.skip(entry.key.text, "not a complete response to GET")
                    }
                    return
                }
                let url = memberURL ?? PackagedResponse.url(ofVariant: entry.key) ?? entry.key.text
                if let objection = try Self.objection(entry, response, url, store) {
                    return writer.skip(entry.key.text, objection)
                }
                if urls.insert(url.hashValue).inserted {
                    try writer.add(Self.member(url, entry, response, in: store))
                }
            }
            return try writer.finish(baseURL: nil)
        }
    }

    /// True for the member that a cache would use if nothing came over the network: of several the one with the latest
    /// date.
    private static func isUsed(
        _ member: Attributes, _ url: String, _ packages: PackageTable, in store: Store
    ) throws -> Bool {
        let others = packages.members(url).map(\.key).filter { $0 != member.key }
        guard !others.isEmpty, let own = PackagedResponse.read(member.metadata) else { return true }
        return try others.allSatisfy { key in
            guard let other = try store.attributes(of: key).flatMap({ PackagedResponse.read($0.metadata) }) else {
                return true
            }
            return (other.policy.date, other.responseTime, key) < (own.policy.date, own.responseTime, member.key)
        }
    }

    /// The reason not to pack a response; nil if it is packed.
    private static func objection(
        _ entry: Attributes, _ response: StoredResponse, _ url: String, _ store: Store
    ) throws -> String? {
        if url.utf8.contains(0x20) { return "not stored under its URL" }
        if response.isInvalidated { return "invalidated" }
        let status = response.head.status.code
        if !(200...599).contains(status) || [206, 304, 401, 407, 412, 416].contains(status) {
            return "status \(status)"
        }
        let directives = CacheRules().directives(of: response.head)
        if directives.noStore || directives.isPrivate != .absent { return "for one user only" }
        // What is not encoded is right for every client.
        let fields = response.head.headerFields
        let varies = fields[values: .vary].joined(separator: ",").split(separator: ",").contains {
            $0.filter { !$0.isWhitespace }.lowercased() != "accept-encoding"
        }
        let isEncoded = fields.contains(.contentEncoding)
        return varies || (isEncoded && fields.contains(.vary)) ? "one of several variants of its URL" : nil
    }
}
