import HTTPCaching
import Larder

/// Reads manifests line by line. An entry is known to be complete when the next one begins.
struct ManifestParser {
    /// The reason to refuse a line.
    struct Objection: Error {
        let message: String
    }

    private static let separator = Array(" ; ".utf8)
    private static let baseMark = Array("baseURL = ".utf8)

    private(set) var baseURL: String?
    private(set) var style = ManifestStyle(.threeFields)
    private var held: ManifestEntry?

    /// Takes the next line, without its end; returns the entry before it.
    mutating func take(_ line: [UInt8]) throws(Objection) -> ManifestEntry? {
        guard let text = String(validating: line, as: UTF8.self) else { throw Objection(message: "is not UTF-8") }
        if line.allSatisfy({ $0 == 0x20 || $0 == 0x09 }) { return nil }
        if line.starts(with: Self.baseMark) {
            baseURL = String(decoding: line.dropFirst(Self.baseMark.count), as: UTF8.self)
            style.form = .fiveFields
            return nil
        }
        // An entry whose media type is on the next line, as the description of the format has it.
        let rest = line.dropFirst(Self.separator.count)
        if line.starts(with: Self.separator), rest.firstRange(of: Self.separator) == nil, var entry = held,
            entry.mediaType == nil
        {
            entry.mediaType = Self.known(Substring(decoding: rest, as: UTF8.self))
            held = entry
            style.form = max(style.form, .fourFields)
            return nil
        }
        let entry = try parse(text)
        defer { held = entry }
        return held
    }

    /// The last entry.
    mutating func finish() -> ManifestEntry? {
        defer { held = nil }
        return held
    }

    private mutating func parse(_ text: String) throws(Objection) -> ManifestEntry {
        // An empty media type leaves a separator without its second space where an editor strips lines.
        let text = text.hasSuffix(" ;") ? text + " " : text
        // Of the bytes: a letter that begins with an accent is one character with the space before it.
        let fields = text.utf8.split(separator: Self.separator, omittingEmptySubsequences: false).map(Substring.init)
        guard let form = ManifestStyle.Form(rawValue: fields.count) else {
            throw Objection(
                message:
                    "has \(fields.count) fields; an entry has 3 to 5: URL ; last-modified ; expires ; mimetype ; file")
        }
        style.form = max(style.form, form)
        let url = String(fields[0])
        if url.isEmpty { throw Objection(message: "has no URL") }
        if url.utf8.contains(UInt8(ascii: "#")) { throw Objection(message: "has a URL with a fragment") }
        return ManifestEntry(
            url: url, lastModified: try date(fields[1], "last-modified"), expires: try date(fields[2], "expires"),
            mediaType: fields.count > 3 ? Self.known(fields[3]) : nil,
            fileName: fields.count > 4 ? Self.known(fields[4]) : nil)
    }

    private static func known(_ text: Substring) -> String? {
        ["", "NULL", "(null)"].contains(text) ? nil : String(text)
    }

    private mutating func date(_ text: Substring, _ name: String) throws(Objection) -> Timestamp? {
        guard var text = Self.known(text) else { return nil }
        if text.hasSuffix("GMT+00:00") {
            text.removeLast(6)
            style.hasZoneOffset = true
        }
        guard let moment = HTTPDate.parse(Array(text.utf8), now: Instant(milliseconds: 0)) else {
            throw Objection(message: "has no date of RFC 1123 as \(name): '\(Key(text))'")
        }
        return Timestamp(microseconds: moment.milliseconds * 1_000)
    }
}

extension ManifestStyle.Form: Comparable {
    /// By the number of fields.
    public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}
