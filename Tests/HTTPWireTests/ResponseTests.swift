import HTTPTypes
import Testing

@testable import HTTPWire

@Suite struct ResponseTests {
    @Test func aResponseIsRead() throws {
        let head = try response(
            "HTTP/1.1 203 Non-Authoritative\tInformation\r\nServer: x\r\nSet-Cookie: a\r\nset-cookie: b\r\nEmpty:\r\n\r\n"
        )
        #expect(head.response.status.code == 203)
        #expect(head.response.status.reasonPhrase == "Non-Authoritative\tInformation")
        #expect(head.response.headerFields.map(\.name.rawName) == ["Server", "Set-Cookie", "set-cookie", "Empty"])
        #expect(head.response.headerFields.map(\.value) == ["x", "a", "b", ""])
        #expect(head.framing == .untilClose)
        #expect(!head.persists)
    }

    @Test(arguments: [
        ("HTTP/1.1 200 OK", 200, "OK"), ("HTTP/1.1 200 ", 200, ""), ("HTTP/1.1 200", 200, ""),
        ("HTTP/1.0 999 Odd", 999, "Odd"), ("HTTP/1.1 100 ", 100, ""),
        ("HTTP/1.1 404  two blanks ", 404, " two blanks "),
        ("HTTP/1.3 200 \u{e9}\u{ff}", 200, "\u{e9}\u{ff}"),
    ]) func statusLine(line: String, code: Int, reason: String) throws {
        let status = try response(line + "\r\n\r\n").response.status
        #expect(status.code == code)
        #expect(status.reasonPhrase == reason)
    }

    @Test(
        arguments: [
            ("HTTP/1.1 20 OK", .invalidStatus), ("HTTP/1.1 2000 OK", .invalidStatus),
            ("HTTP/1.1 099 OK", .invalidStatus),
            ("HTTP/1.1  200 OK", .invalidStatus), ("HTTP/1.1 2x0 OK", .invalidStatus),
            ("HTTP/1.1 -20 OK", .invalidStatus),
            ("HTTP/1.1", .invalidStatus), ("HTTP/2 200 OK", .invalidVersion), ("HTTP/2.0 200 OK", .unsupportedVersion),
            ("ICY 200 OK", .invalidVersion), ("http/1.1 200 OK", .invalidVersion), ("", .invalidVersion),
            ("HTTP/1.1 200 O\0K", .controlCharacter), ("HTTP/1.1 200 O\rK", .bareCarriageReturn),
            ("HTTP/1.1 200\tOK", .controlCharacter), ("HTTP/1.1 200 O\u{7f}K", .invalidStatus),
            (" HTTP/1.1 200 OK", .invalidVersion), ("SSH-2.0-OpenSSH_9.6", .invalidVersion),
        ] as [(String, WireError)]) func statusLineIsRefused(line: String, error: WireError)
    {
        #expect(throws: error) { try response(line + "\r\nA: b\r\n\r\n") }
    }

    /// RFC 9112 6.3 rules 1 and 2, whatever the fields say.
    @Test(arguments: [
        (HTTPRequest.Method.head, 200, BodyFraming.none), (.get, 100, .none), (.get, 103, .none), (.get, 204, .none),
        (.get, 304, .none), (.connect, 200, .tunnel), (.connect, 404, .length(5)), (.get, 205, .length(5)),
        (.head, 404, .none), (.post, 999, .length(5)),
    ]) func contentDependsOnTheRequest(method: HTTPRequest.Method, code: Int, framing: BodyFraming) throws {
        let head = try response("HTTP/1.1 \(code) x\r\nContent-Length: 5\r\n\r\n", answering: method)
        #expect(head.framing == framing)
        #expect(head.persists == (framing != .tunnel))
        #expect(head.response.headerFields[.contentLength] == "5")
    }

    @Test(arguments: [
        ("a\r\n b", "a b"), ("a \t\r\n \t b\r\n\tc", "a b c"), ("\r\n b", "b"), ("a\r\n ", "a"), ("\r\n \r\n ", ""),
        ("a\r\n \r\n b", "a b"),
    ]) func obsFoldBecomesABlank(value: String, expected: String) throws {
        let head = try response("HTTP/1.1 200 OK\r\nX:\(value)\r\nY: z\r\n\r\n")
        #expect(head.response.headerFields.map(\.value) == [expected, "z"])
    }

    @Test(arguments: [
        ("HTTP/1.1 204 x", "", true), ("HTTP/1.1 204 x", "Connection: close\r\n", false), ("HTTP/1.0 204 x", "", false),
        ("HTTP/1.0 204 x", "Connection: keep-alive\r\n", true), ("HTTP/1.1 200 x", "", false),
        ("HTTP/1.1 200 x", "Content-Length: 0\r\nConnection: Close, x\r\n", false),
        ("HTTP/1.0 200 x", "Content-Length: 0\r\nConnection: x,Keep-Alive\r\n", true),
    ]) func persistence(line: String, fields: String, persists: Bool) throws {
        #expect(try response("\(line)\r\n\(fields)\r\n").persists == persists)
    }

    @Test func limitsHold() throws {
        let limits = HeadLimits(headBytes: 64, fields: 2)
        #expect(throws: WireError.headTooLarge) {
            try response("HTTP/1.1 200 \(String(repeating: "x", count: 64))\r\n\r\n", limits: limits)
        }
        #expect(throws: WireError.tooManyFields) {
            try response("HTTP/1.1 200 OK\r\na:\r\nb:\r\nc:\r\n\r\n", limits: limits)
        }
        #expect(throws: WireError.tooManyFields) {
            try response("HTTP/1.1 200 OK\r\na:\r\n b\r\n c\r\n\r\n", limits: limits)
        }
    }
}
