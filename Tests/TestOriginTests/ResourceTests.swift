import HTTPTestSupport
import TestOrigin
import Testing

/// A resource answers conditions and ranges as RFC 9110 says.
struct ResourceTests {
    static let date = "Thu, 01 Jan 2026 00:00:00 GMT"
    let resource = OriginResource(
        "0123456789", etag: "\"1\"", lastModified: date, fields: [.init("Cache-Control", "max-age=5")])

    @Test(
        arguments: [
            ([], 200, "0123456789"),
            (["If-None-Match: \"1\""], 304, ""),
            (["If-None-Match: \"0\", W/\"1\""], 304, ""),
            (["If-None-Match: *"], 304, ""),
            (["If-None-Match: \"2\""], 200, "0123456789"),
            (["If-None-Match: \"2\"", "If-Modified-Since: \(date)"], 200, "0123456789"),
            (["If-Modified-Since: \(date)"], 304, ""),
            (["If-Modified-Since: Wed, 31 Dec 2025 00:00:00 GMT"], 200, "0123456789"),
            (["If-Match: \"1\""], 200, "0123456789"),
            (["If-Match: \"2\""], 412, ""),
            (["Range: bytes=2-4"], 206, "234"),
            (["Range: bytes=7-"], 206, "789"),
            (["Range: bytes=-2"], 206, "89"),
            (["Range: bytes=5-99"], 206, "56789"),
            (["Range: bytes=10-"], 416, ""),
            (["Range: bytes=4-2"], 200, "0123456789"),
            (["Range: lines=1-2"], 200, "0123456789"),
            (["Range: bytes=2-4", "If-Range: \"1\""], 206, "234"),
            (["Range: bytes=2-4", "If-Range: \"2\""], 200, "0123456789"),
            (["Range: bytes=2-4", "If-Range: \(date)"], 206, "234"),
            (["Range: bytes=2-4", "If-None-Match: \"1\""], 304, ""),
        ] as [([String], Int, String)])
    func answers(_ fields: [String], _ status: Int, _ content: String) async throws {
        try await withOrigin { [resource] in
            resource.answer($0)
        } _: { origin in
            let text = "GET / HTTP/1.1\r\nHost: h\r\n" + fields.map { $0 + "\r\n" }.joined() + "\r\n"
            let response = try await exchange(origin.port, text)
            #expect(response.status == status)
            #expect(response.text == content)
            #expect(response["ETag"] == (status == 412 || status == 416 ? nil : "\"1\""))
            if status == 416 { #expect(response["Content-Range"] == "bytes */10") }
        }
    }

    @Test func severalRangesComeInParts() async throws {
        try await withOrigin { [resource] in
            resource.answer($0)
        } _: { origin in
            let response = try await exchange(origin.port, get("/", "Range: bytes=0-1, -1"))
            #expect(response.status == 206)
            #expect(response["Content-Type"] == "multipart/byteranges; boundary=part-of-the-test-origin")
            let parts = response.text.components(separatedBy: "--part-of-the-test-origin")
            #expect(
                parts == [
                    "", "\r\nContent-Range: bytes 0-1/10\r\n\r\n01\r\n",
                    "\r\nContent-Range: bytes 9-9/10\r\n\r\n9\r\n", "--\r\n",
                ])
        }
    }
}

extension String {
    fileprivate func components(separatedBy separator: String) -> [String] {
        split(separator: separator, omittingEmptySubsequences: false).map(String.init)
    }
}
