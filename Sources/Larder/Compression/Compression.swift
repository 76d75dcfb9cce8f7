/// Whether the body of a put is stored compressed: as one gzip member (RFC 1952), where that saves at least an eighth.
///
/// Keys, digests, lengths, ranges and `Body` are those of the body itself. The byte budget counts what is stored.
/// Bodies of 256 B to 16 MiB are compressed: smaller ones gain nothing, and a range of a larger one would take too long
/// to reach. Bodies that are part of their entry's record, entries of policy `memoryOnly`, files that are adopted and
/// bodies that are written in ranges are stored as they come.
public enum Compression: Sendable, Hashable {
    /// Stored as it comes.
    case off
    /// Compressed, and stored so if that saves enough. A body of 256 KiB and more is tried at its first 64 KiB.
    case trial
    /// As `trial` for content of a media type (RFC 9110, section 8.3.1) that is known to shrink, as text, JSON and XML
    /// are; else as `off`.
    case mediaType(String)

    /// True if a body of that length is to be tried.
    func tries(_ length: Int) -> Bool {
        guard Self.lengths.contains(length) else { return false }
        switch self {
        case .off: return false
        case .trial: return true
        case .mediaType(let type): return Self.shrinks(type)
        }
    }

    /// The lengths of bodies that are compressed.
    static let lengths = 256...16 << 20

    private static func shrinks(_ type: String) -> Bool {
        let essence = type.prefix { $0 != ";" }.lowercased().filter { $0 != " " && $0 != "\t" }
        if essence.hasPrefix("text/") || essence.hasSuffix("+json") || essence.hasSuffix("+xml") { return true }
        return shrinking.contains(essence)
    }

    private static let shrinking: Set<String> = [
        "application/json", "application/javascript", "application/x-javascript", "application/ecmascript",
        "application/xml", "application/graphql", "application/ld+json", "application/manifest+json",
        "application/rtf", "application/sql", "application/toml", "application/yaml", "application/x-ndjson",
        "application/x-sh", "application/x-tar", "application/wasm", "application/vnd.ms-fontobject", "font/ttf",
        "font/otf", "font/collection", "image/bmp", "image/x-icon", "image/vnd.microsoft.icon", "model/gltf-binary",
    ]
}
