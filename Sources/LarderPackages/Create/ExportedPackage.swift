import HTTPCaching
import HTTPTypes
import Larder
import LarderHTTP
import SystemPackage

extension PackageStore {
    /// Packs responses that are in the store: whole responses to GET that do not vary. Others are left out, and the
    /// summary says which.
    ///
    /// - Parameters:
    ///   - selection: which entries, by prefix, host, tag or anything else. Default: all.
    ///   - archive: the path of the archive; replaced if it exists, once the new one is whole.
    ///   - options: how the package is made.
    /// - Returns: what was packed.
    /// - Throws: ``PackageError``; `LarderError` of the store; `CancellationError` in a cancelled task.
    @discardableResult
    public func export(
        _ selection: Selection = .all, to archive: FilePath, _ options: PackageOptions = PackageOptions()
    ) async throws -> PackageSummary {
        try await performExport(selection, archive, options)
    }

    fileprivate static func member(_ entry: Attributes, _ response: StoredResponse, in store: Store)
        -> PackageWriter.Member
    {
        let url = entry.key.text
        let fields = response.head.headerFields.filter { $0.name != .setCookie && $0.name != .contentLength }
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
                ? Timestamp(microseconds: response.policy.freshUntil.milliseconds / 1_000 * 1_000_000) : moment(.expires),
            mediaType: response.head.headerFields[.contentType],
            source: BodySource(entry.digest, length: entry.length.bytes, in: store))
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
            try store.forEach(selection) { entry in
                guard entry.key.text.contains("://"), PackagedResponse.isResponse(entry.metadata) else { return }
                guard let response = PackagedResponse.read(entry.metadata) else {
                    return writer.skip(entry.key.text, "not a whole response to GET")
                }
                guard response.selecting.fields.isEmpty, !entry.key.bytes.contains(0x20) else {
                    return writer.skip(entry.key.text, "one of several responses of its URL")
                }
                guard response.head.status.code >= 200, response.head.status.code <= 599 else {
                    return writer.skip(entry.key.text, "status \(response.head.status.code)")
                }
                try writer.add(Self.member(entry, response, in: store))
            }
            return try writer.finish(baseURL: nil)
        }
    }
}
