import HTTPTypes

/// Names of fields that are met all the time, made once: a name of more than 15 bytes costs two allocations otherwise.
enum FieldNames {
    /// The name, spelt as in `bytes`; nil if it is not a token.
    static func name(_ bytes: UnsafeRawBufferPointer) -> HTTPField.Name? {
        for known in table[slot(bytes)] where known.bytes.count == bytes.count {
            if known.bytes.withUnsafeBytes({ $0.elementsEqual(bytes) }) { return known.name }
        }
        return HTTPField.Name(String(decoding: bytes, as: UTF8.self))
    }

    private struct Known: Sendable {
        let bytes: [UInt8]
        let name: HTTPField.Name
    }

    private static let table: [[Known]] = {
        var table = [[Known]](repeating: [], count: 256)
        for text in spellings {
            for spelling in [text, text.lowercased()] {
                let bytes = Array(spelling.utf8)
                let slot = bytes.withUnsafeBytes(slot)
                guard let name = HTTPField.Name(spelling) else { continue }
                table[slot].append(Known(bytes: bytes, name: name))
            }
        }
        return table
    }()

    @inline(__always) private static func slot(_ bytes: UnsafeRawBufferPointer) -> Int {
        guard let first = bytes.first, let last = bytes.last else { return 0 }
        let middle = bytes[bytes.count / 2]
        return (bytes.count &* 37 &+ Int(first) &* 5 &+ Int(middle) &* 11 &+ Int(last)) & 255
    }

    private static let spellings = [
        "Accept", "Accept-Encoding", "Accept-Language", "Accept-Ranges", "Access-Control-Allow-Credentials",
        "Access-Control-Allow-Headers", "Access-Control-Allow-Methods", "Access-Control-Allow-Origin",
        "Access-Control-Expose-Headers", "Access-Control-Max-Age", "Age", "Alt-Svc", "Authorization", "Cache-Control",
        "Cache-Status", "CDN-Cache-Control", "Connection", "Content-Disposition", "Content-Encoding",
        "Content-Language", "Content-Length", "Content-Location", "Content-Range", "Content-Security-Policy",
        "Content-Type", "Cookie", "DNT", "Date", "ETag", "Expect", "Expires", "Forwarded", "If-Match",
        "If-Modified-Since", "If-None-Match", "If-Range", "If-Unmodified-Since", "Keep-Alive", "Last-Modified", "Link",
        "Location", "Origin", "Pragma", "Priority", "Range", "Referer", "Referrer-Policy", "Retry-After", "Sec-CH-UA",
        "Sec-CH-UA-Mobile", "Sec-CH-UA-Platform", "Sec-Fetch-Dest", "Sec-Fetch-Mode", "Sec-Fetch-Site",
        "Sec-Fetch-User", "Server", "Server-Timing", "Set-Cookie", "Strict-Transport-Security", "Surrogate-Key", "TE",
        "Timing-Allow-Origin", "Trailer", "Transfer-Encoding", "Upgrade", "Upgrade-Insecure-Requests", "User-Agent",
        "Vary", "Via", "WWW-Authenticate", "X-Cache", "X-Content-Type-Options", "X-Forwarded-For", "X-Forwarded-Host",
        "X-Forwarded-Proto", "X-Frame-Options", "X-Real-IP", "X-Request-ID", "X-XSS-Protection",
    ]
}
