import HTTPTestSupport
import TestOrigin

/// One kind of request, of which many are sent.
struct RequestPath: Sendable {
    enum Connection: Sendable {
        case plain, tls, http2
        /// To the gateway whose store commits nothing.
        case holding
    }

    let name: String
    var connection = Connection.plain
    var method = "GET"
    /// All requests are for this, unless they are all different.
    let target: String
    var allDiffer = false
    var fields: [String] = []
    var status = 200
    /// Bytes of content in each answer.
    var length: Int
    /// False: each is answered by the origin.
    var isHit = true
    /// True: the origin sends no more than the range that is asked for.
    var isPart = false

    static let all = [
        RequestPath(name: "hit-1KiB", target: "/small", length: 1 << 10),
        RequestPath(name: "hit-64KiB", target: "/large", length: 64 << 10),
        RequestPath(
            name: "not-modified", target: "/small", fields: ["If-None-Match: \"small\""], status: 304, length: 0),
        RequestPath(
            name: "range-200-of-1MiB", target: "/huge", fields: ["Range: bytes=5000-5199"], status: 206, length: 200),
        RequestPath(
            name: "range-200-of-a-part", target: "/part", fields: ["Range: bytes=5000-5199"], status: 206, length: 200,
            isPart: true),
        RequestPath(name: "hit-varying", target: "/varying", fields: ["Accept-Encoding: gzip"], length: 1 << 10),
        RequestPath(name: "head", method: "HEAD", target: "/small", length: 0),
        RequestPath(name: "hit-tls", connection: .tls, target: "/small", length: 1 << 10),
        RequestPath(name: "hit-http2", connection: .http2, target: "/small", length: 1 << 10),
        RequestPath(name: "pass-1KiB", target: "/private", length: 1 << 10, isHit: false),
        RequestPath(
            name: "miss-stored-1KiB", connection: .holding, target: "/new/", allDiffer: true, length: 1 << 10,
            isHit: false),
    ]

    /// The request with this number.
    func request(_ number: Int) -> String {
        let lines = ["\(method) \(target(number)) HTTP/1.1", "Host: example.org"] + fields
        return lines.map { $0 + "\r\n" }.joined() + "\r\n"
    }

    func target(_ number: Int) -> String { allDiffer ? "\(target)\(number)" : target }

    /// What the origin answers.
    static func answer(_ target: String) -> OriginAnswer {
        let fresh = "max-age=86400"
        switch target {
        case "/small": return .ok(bytes(1 << 10)).header("Cache-Control", fresh).header("ETag", "\"small\"")
        case "/large": return .ok(bytes(64 << 10)).header("Cache-Control", fresh)
        case "/huge": return .ok(bytes(1 << 20)).header("Cache-Control", fresh)
        case "/part":
            return .status(206).content(bytes(200)).header("Cache-Control", fresh).header("ETag", "\"part\"")
                .header("Content-Range", "bytes 5000-5199/1048576")
        case "/varying":
            return .ok(bytes(1 << 10)).header("Cache-Control", fresh).header("Vary", "Accept-Encoding")
        case "/private": return .ok(bytes(1 << 10)).header("Cache-Control", "no-store")
        default: return .ok(bytes(1 << 10, seed: target)).header("Cache-Control", fresh)
        }
    }

    /// Bytes that differ with the seed, so that the store does not keep bodies of several entries as one.
    private static func bytes(_ count: Int, seed: String = "") -> [UInt8] {
        let seed = Array(seed.utf8)
        return seed + (seed.count..<count).map { UInt8(truncatingIfNeeded: $0 &* 31) }
    }
}
