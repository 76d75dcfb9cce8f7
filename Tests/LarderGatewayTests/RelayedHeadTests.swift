import HTTPTestSupport
import LarderHTTP
import TestOrigin
import TestSupport
import Testing

/// The head of a relayed response is passed on as the bytes that came, where it is stored, too, and no client sees a
/// difference to one that was made into objects: a `Pragma` that says nothing sends the same request that way.
struct RelayedHeadTests {
    private static let lines = [
        "Cache-Control: no-store", "cache-control: NO-STORE", "Cache-Control: max-age=60", "Cache-Control: private",
        "Cache-Control: private=\"X-Own\"", "Cache-Control: must-understand, no-store", "Cache-Control:",
        "Cache-Control: max-age=60,\r\n no-store", "CDN-Cache-Control: no-store", "CDN-Cache-Control: max-age=60",
        "Expires: Thu, 01 Jan 1970 00:00:00 GMT", "Pragma: no-cache", "Vary: *", "Vary: Accept", "ETag: \"a\"",
        "Last-Modified: Thu, 01 Jan 1970 00:00:00 GMT", "Date: Thu, 01 Jan 1970 00:00:00 GMT", "DATE: not a date",
        "Age: 5", "Via: 1.0 other", "Cache-Status: Other; hit", "Set-Cookie: a=b", "set-cookie: c=d", "X-Own:",
        "X-Own: a\tb  c", "X-Own:\ta\t", "X-Own: \u{e9}\u{ff}\u{80}", "X-Own : a", "X-Own: a\r\n b\r\n\tc",
        "x-own: a,, b",
        "Connection: keep-alive", "CONNECTION: Keep-Alive", "Connection: close", "Connection: X-Own",
        "Connection: keep-alive, X-Own", "Connection: close,", "Connection:", "Keep-Alive: timeout=5",
        "Proxy-Connection: keep-alive", "PROXY-AUTHENTICATE: Basic", "Proxy-Authentication-Info: a", "Upgrade: h2c",
        "TE: trailers", "Trailer: X-Own", "Close: a", "Content-Length: 4", "content-length: 4, 4", "Link: </a>",
        "Content-Location: /b", "Location: /c", "Accept-Ranges: bytes", "Retry-After: 1", "Surrogate-Key: a b",
    ]
    private static let statusLines = [
        "HTTP/1.1 200 OK", "HTTP/1.1 200 OK", "HTTP/1.1 200 OK", "HTTP/1.1 200", "HTTP/1.1 200 Fine\t\u{e9}",
        "HTTP/1.0 200 OK", "HTTP/1.1 404 Not Found", "HTTP/1.1 299 ", "HTTP/1.1 503 Busy", "HTTP/1.1 302 Found",
    ]

    /// What an origin answers to requests for a number.
    private static func answer(_ number: Int) -> OriginAnswer {
        var random = SeededGenerator(seed: UInt64(number))
        var head = [statusLines.randomElement(using: &random) ?? ""]
        // Half of all say at once that they are not stored.
        if Bool.random(using: &random) { head.append("Cache-Control: no-store") }
        for _ in 0..<Int.random(in: 0...7, using: &random) { head.append(lines.randomElement(using: &random) ?? "") }
        head.append("Content-Length: 4")
        let text = head.joined(separator: "\r\n") + "\r\n\r\nbody"
        return .raw(text.unicodeScalars.map { UInt8($0.value) }, then: .keepAlive)
    }

    @Test(arguments: 0..<4) func theyAreThoseOfLoads(_ round: Int) async throws {
        try await withOrigin {
            Int($0.path.dropFirst().prefix { $0 != "/" }).map(Self.answer) ?? .ok("warm").header("ETag", "\"w\"")
        } caching: {
            $0.clock = TestClock()
            $0.caching.targetedFields = round % 2 == 0 ? [.cdnCacheControl] : []
        } _: { setting, _ in
            let client = try await setting.connect()
            for number in round * 100..<round * 100 + 100 {
                // Leaves an idle connection to the origin, which the head before may have closed.
                _ = try await client.exchange(get("/warm/\(number)", "Pragma: nothing"))
                let before = setting.cache.relayedCount
                let short = try await client.exchange(get("/\(number)/short"))
                #expect(setting.cache.relayedCount == before + 1)
                let long = try await client.exchange(get("/\(number)/long", "Pragma: nothing"))
                #expect(setting.cache.relayedCount == before + 1)
                #expect(Self.lines(of: short) == Self.lines(of: long), "\(number)")
                #expect(short.body == long.body)
            }
            try await client.close()
        }
    }

    private static func lines(of response: RawResponse) -> [String] {
        [response.statusLine] + response.fields.map { "\($0.name): \($0.value)" }
    }
}
