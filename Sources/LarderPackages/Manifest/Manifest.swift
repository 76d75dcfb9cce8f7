import HTTPCaching
import Larder

/// An entry of a manifest in one of AFCache's forms: a URL, and what is known of its response.
///
///     https://example.org/logo.png ; Sat, 27 Mar 2004 18:43:30 GMT ; Thu, 29 Jul 2010 14:17:20 GMT ; image/png
///
/// The fields are separated by a space, a semicolon and a space.
public struct ManifestEntry: Sendable, Hashable {
    /// The URL, percent-encoded, without a fragment.
    public var url: String
    /// `Last-Modified`, in whole seconds. Nil: not known.
    public var lastModified: Timestamp?
    /// `Expires`, in whole seconds. Nil: not known.
    public var expires: Timestamp?
    /// The media type. Nil: not known.
    public var mediaType: String?
    /// The member of the archive with the content. Nil: it follows from the URL.
    public var fileName: String?

    /// Makes an entry; every part but the URL has a default of nil.
    public init(
        url: String, lastModified: Timestamp? = nil, expires: Timestamp? = nil, mediaType: String? = nil,
        fileName: String? = nil
    ) {
        self.url = url
        self.lastModified = lastModified
        self.expires = expires
        self.mediaType = mediaType
        self.fileName = fileName
    }
}

/// The style of a manifest: one of the forms that versions of AFCache and its tools have used.
public struct ManifestStyle: Sendable, Hashable {
    /// The number of fields of an entry.
    public enum Form: Int, Sendable, CaseIterable {
        /// URL, Last-Modified, Expires.
        case threeFields = 3
        /// The same, and the media type, which may be empty.
        case fourFields = 4
        /// The same, and the name of the file in the archive; `NULL` stands for an unknown value. The manifest begins
        /// with `baseURL = `.
        case fiveFields = 5
    }

    /// The number of fields of an entry. Default: four.
    public var form: Form
    /// Ends dates with `GMT+00:00`, as the tools of AFCache did, instead of `GMT`. Default: false.
    public var hasZoneOffset: Bool
    /// Ends the last line with a line feed. Default: false, as in the tools of AFCache.
    public var endsWithLineFeed: Bool

    /// Makes a style.
    public init(_ form: Form = .fourFields, hasZoneOffset: Bool = false, endsWithLineFeed: Bool = false) {
        self.form = form
        self.hasZoneOffset = hasZoneOffset
        self.endsWithLineFeed = endsWithLineFeed
    }
}

/// A whole manifest, in memory.
public struct Manifest: Sendable, Hashable {
    /// The names of the manifest in archives. The first one is used for writing.
    public static let fileNames = ["manifest.afcache", "afcache.manifest"]

    /// The URL that relative URLs of the entries are below, in the form with five fields. Nil: none.
    public var baseURL: String?
    /// The entries, in order.
    public var entries: [ManifestEntry]
    /// The style that was read, or that is used for writing.
    public var style: ManifestStyle

    /// Makes a manifest.
    public init(_ entries: [ManifestEntry], baseURL: String? = nil, style: ManifestStyle = ManifestStyle()) {
        self.entries = entries
        self.baseURL = baseURL
        self.style = style
    }

    /// Reads a manifest of any form. Skips empty lines. A line with only ` ; mimetype` continues the entry before it.
    ///
    /// - Parameter text: the bytes of the file.
    /// - Throws: ``PackageError/Code/badManifest`` with the number of the line.
    public init(parsing text: [UInt8]) throws(PackageError) {
        var parser = ManifestParser()
        entries = []
        var number = 0
        for line in text.split(separator: 0x0A, omittingEmptySubsequences: false) {
            number += 1
            do {
                if let entry = try parser.take(line.last == 0x0D ? Array(line.dropLast()) : Array(line)) {
                    entries.append(entry)
                }
            } catch {
                throw PackageError(.badManifest, "line \(number) \(error.message)")
            }
        }
        if let last = parser.finish() { entries.append(last) }
        baseURL = parser.baseURL
        style = parser.style
        style.endsWithLineFeed = text.last == 0x0A
    }

    /// The text of the file.
    public var text: String {
        var lines: [String] = []
        if style.form == .fiveFields, let baseURL { lines.append("baseURL = \(baseURL)") }
        lines += entries.map { $0.line(style) }
        return lines.joined(separator: "\n") + (style.endsWithLineFeed && !lines.isEmpty ? "\n" : "")
    }
}

extension ManifestEntry {
    /// The entry as a line, without an end.
    func line(_ style: ManifestStyle) -> String {
        let isLong = style.form == .fiveFields
        func date(_ moment: Timestamp?) -> String {
            guard let moment else { return isLong ? "NULL" : "" }
            let text = HTTPDate.format(Instant(milliseconds: moment.microseconds / 1_000))
            return style.hasZoneOffset ? text + "+00:00" : text
        }
        var fields = [url, date(lastModified), date(expires)]
        if style.form != .threeFields { fields.append(mediaType ?? (isLong ? "NULL" : "")) }
        if isLong { fields.append(fileName ?? "NULL") }
        return fields.joined(separator: " ; ")
    }
}
