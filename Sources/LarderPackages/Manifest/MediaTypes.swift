/// Media types by the extension of a file's name. `tools/afcpkg.py` has the same table.
public struct MediaTypes: Sendable, Hashable {
    private var types: [String: String]

    /// The types that are known, and others.
    ///
    /// - Parameter more: types by extension, in lower case and without the dot. They count before the known ones.
    public init(_ more: [String: String] = [:]) { types = Self.known.merging(more) { $1 } }

    /// Reads a table in the form of `mime.types`: a type, then its extensions, on each line; `#` begins a comment.
    ///
    /// - Parameter text: the content of the file.
    public init(table text: String) {
        var more: [String: String] = [:]
        for line in text.utf8.split(separator: UInt8(ascii: "\n")) {
            let words = line.prefix { $0 != UInt8(ascii: "#") }.split { $0 == 0x20 || $0 == 0x09 || $0 == 0x0D }
            // A type has to fit in a header field.
            guard let type = words.first, type.allSatisfy({ (0x21...0x7E).contains($0) }) else { continue }
            for word in words.dropFirst() { if let word = Self.lowercased(word) { more[word] = String(type) } }
        }
        self.init(more)
    }

    /// The type of a file; nil if its extension is not known.
    ///
    /// - Parameter name: of the file, with or without directories.
    public func type(of name: String) -> String? {
        let bytes = name.utf8
        let last = bytes.lastIndex(of: UInt8(ascii: "/")).map { bytes[bytes.index(after: $0)...] } ?? bytes[...]
        guard let dot = last.lastIndex(of: UInt8(ascii: ".")), dot != last.startIndex else { return nil }
        return Self.lowercased(last[last.index(after: dot)...]).flatMap { types[$0] }
    }

    /// An extension in lower case; nil for one that has other characters than those of ASCII.
    private static func lowercased(_ word: Substring.UTF8View) -> String? {
        guard word.allSatisfy({ $0 < 0x80 }) else { return nil }
        return String(decoding: word.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }, as: UTF8.self)
    }

    /// The extensions that are known.
    static var extensions: [String] { known.keys.sorted() }

    private static let known: [String: String] = [
        "aac": "audio/aac", "apng": "image/apng", "atom": "application/atom+xml", "avi": "video/x-msvideo",
        "avif": "image/avif", "bin": "application/octet-stream", "bmp": "image/bmp", "bz2": "application/x-bzip2",
        "css": "text/css", "csv": "text/csv", "doc": "application/msword",
        "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "eot": "application/vnd.ms-fontobject", "epub": "application/epub+zip", "flac": "audio/flac",
        "geojson": "application/geo+json", "gif": "image/gif", "glb": "model/gltf-binary", "gltf": "model/gltf+json",
        "gz": "application/gzip", "heic": "image/heic", "htm": "text/html", "html": "text/html",
        "ico": "image/vnd.microsoft.icon", "ics": "text/calendar", "jpeg": "image/jpeg", "jpg": "image/jpeg",
        "js": "text/javascript", "json": "application/json", "jsonld": "application/ld+json",
        "jxl": "image/jxl", "kml": "application/vnd.google-earth.kml+xml", "m3u8": "application/vnd.apple.mpegurl",
        "m4a": "audio/mp4", "m4v": "video/mp4", "map": "application/json", "md": "text/markdown",
        "mid": "audio/midi", "mjs": "text/javascript", "mov": "video/quicktime", "mp3": "audio/mpeg",
        "mp4": "video/mp4", "mpeg": "video/mpeg", "mvt": "application/vnd.mapbox-vector-tile",
        "oga": "audio/ogg", "ogg": "audio/ogg", "ogv": "video/ogg", "opus": "audio/opus", "otf": "font/otf",
        "pbf": "application/x-protobuf", "pdf": "application/pdf", "png": "image/png",
        "ppt": "application/vnd.ms-powerpoint",
        "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        "rss": "application/rss+xml", "rtf": "application/rtf", "svg": "image/svg+xml", "tar": "application/x-tar",
        "tif": "image/tiff", "tiff": "image/tiff", "ts": "video/mp2t", "ttf": "font/ttf", "txt": "text/plain",
        "usdz": "model/vnd.usdz+zip", "wasm": "application/wasm", "wav": "audio/wav", "weba": "audio/webm",
        "webm": "video/webm", "webmanifest": "application/manifest+json", "webp": "image/webp", "woff": "font/woff",
        "woff2": "font/woff2", "xhtml": "application/xhtml+xml", "xls": "application/vnd.ms-excel",
        "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "xml": "application/xml",
        "zip": "application/zip", "zst": "application/zstd",
    ]
}
