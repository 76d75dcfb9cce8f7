import HTTPTypes
import Testing

@testable import HTTPWire

@Suite struct RequestTests {
    /// A head and what is wrong with it.
    struct Refused: CustomTestStringConvertible, Sendable {
        let rule: String
        let head: String
        let error: WireError
        init(_ rule: String, _ head: String, _ error: WireError) {
            self.rule = rule
            self.head = head
            self.error = error
        }
        var testDescription: String { rule }
    }

    private static func get(_ fields: String) -> String { "GET / HTTP/1.1\r\nHost: a\r\n\(fields)\r\n" }

    static let lines: [Refused] = [
        Refused("RFC 9112 2.2: LF alone ends no line", "GET / HTTP/1.1\nHost: a\r\n\r\n", .bareLineFeed),
        Refused("2.2: LF alone ends no field line", "GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n", .bareLineFeed),
        Refused("2.2: LF alone ends no head", "GET / HTTP/1.1\r\nHost: a\r\n\n", .bareLineFeed),
        Refused("2.2: CR in a value", get("X: a\rb\r\n"), .bareCarriageReturn),
        Refused("2.2: CR at the end of a value", get("X: a\r\r\n"), .bareCarriageReturn),
        Refused("2.2: CR in the request line", "GET /\r HTTP/1.1\r\nHost: a\r\n\r\n", .invalidVersion),
        Refused("2.2: CR behind the version", "GET / HTTP/1.1\rX\r\nHost: a\r\n\r\n", .bareCarriageReturn),
        Refused(
            "2.2: one empty line is passed over, not two", "\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", .invalidMethod),
        Refused("2.2: white space before the first field", "GET / HTTP/1.1\r\n Host: a\r\n\r\n", .leadingWhitespace),
        Refused("3: two blanks", "GET  / HTTP/1.1\r\nHost: a\r\n\r\n", .invalidTarget),
        Refused("3: a tab", "GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n", .invalidMethod),
        Refused("3: a blank in front", " GET / HTTP/1.1\r\nHost: a\r\n\r\n", .invalidMethod),
        Refused("3: a blank at the end", "GET / HTTP/1.1 \r\nHost: a\r\n\r\n", .invalidVersion),
        Refused("3: no version", "GET /\r\nHost: a\r\n\r\n", .invalidVersion),
        Refused("3.1: a method that is not a token", "G(T / HTTP/1.1\r\nHost: a\r\n\r\n", .invalidMethod),
        Refused("3.2: a blank in the target", "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", .invalidVersion),
        Refused("3.2: a fragment", "GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n", .invalidTarget),
        Refused("3.2: NUL in the target", "GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n", .invalidTarget),
        Refused("3.2: beyond ASCII in the target", "GET /\u{e9} HTTP/1.1\r\nHost: a\r\n\r\n", .invalidTarget),
        Refused("3.2.1: a path without its slash", "GET a HTTP/1.1\r\nHost: a\r\n\r\n", .invalidTarget),
        Refused("3.2.2: another scheme", "GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n", .invalidTarget),
        Refused("3.2.2: no host in it", "GET http:///b HTTP/1.1\r\nHost: a\r\n\r\n", .invalidTarget),
        Refused("RFC 9110 4.2.4: user information", "GET http://u:p@a/ HTTP/1.1\r\nHost: a\r\n\r\n", .invalidTarget),
        Refused("3.2.3: a method other than CONNECT", "GET a:80 HTTP/1.1\r\nHost: a\r\n\r\n", .invalidTarget),
        Refused("3.2.3: CONNECT without a port", "CONNECT a HTTP/1.1\r\nHost: a\r\n\r\n", .invalidTarget),
        Refused("3.2.3: CONNECT with a path", "CONNECT / HTTP/1.1\r\nHost: a\r\n\r\n", .invalidTarget),
        Refused("3.2.4: an asterisk, not OPTIONS", "GET * HTTP/1.1\r\nHost: a\r\n\r\n", .invalidTarget),
        Refused("2.3: HTTP/2.0", "GET / HTTP/2.0\r\nHost: a\r\n\r\n", .unsupportedVersion),
        Refused("2.3: HTTP/1.2", "GET / HTTP/1.2\r\nHost: a\r\n\r\n", .unsupportedVersion),
        Refused("2.3: HTTP/0.9", "GET / HTTP/0.9\r\nHost: a\r\n\r\n", .unsupportedVersion),
        Refused("2.3: the name is case-sensitive", "GET / http/1.1\r\nHost: a\r\n\r\n", .invalidVersion),
        Refused("2.3: two digits", "GET / HTTP/1.10\r\nHost: a\r\n\r\n", .invalidVersion),
        Refused("2.3: not HTTP", "GET / ICAP/1.0\r\nHost: a\r\n\r\n", .invalidVersion),
    ]

    static let fields: [Refused] = [
        Refused("RFC 9112 5.1: a blank before the colon", get("X : y\r\n"), .whitespaceBeforeColon),
        Refused("5.1: a tab before the colon", get("Content-Length\t: 1\r\n"), .whitespaceBeforeColon),
        Refused("5.2: obs-fold", get("X: y\r\n z\r\n"), .lineFolding),
        Refused("5.2: a line of white space", get("X: y\r\n \r\n"), .lineFolding),
        Refused("5: no name", get(": y\r\n"), .invalidFieldName),
        Refused("5: no colon", get("X\r\n"), .invalidFieldName),
        Refused("RFC 9110 5.1: a name that is not a token", get("X@Y: z\r\n"), .invalidFieldName),
        Refused("RFC 9110 5.1: a name beyond ASCII", get("\u{e9}: z\r\n"), .invalidFieldName),
        Refused("RFC 9110 5.1: NUL in a name", get("X\0: z\r\n"), .invalidFieldName),
        Refused("RFC 9110 5.5: NUL in a value", get("X: \0\r\n"), .controlCharacter),
        Refused("RFC 9110 5.5: DEL in a value", get("X: abcdefghi\u{7f}\r\n"), .controlCharacter),
        Refused("RFC 9110 5.5: ESC in a value", get("X: \u{1b}[2J\r\n"), .controlCharacter),
        Refused("3.2: no Host", "GET / HTTP/1.1\r\nX: y\r\n\r\n", .missingHost),
        Refused("3.2: no field at all", "GET / HTTP/1.1\r\n\r\n", .missingHost),
        Refused("3.2: two of Host", get("Host: b\r\n"), .repeatedHost),
        Refused("3.2: the same Host twice", get("host: a\r\n"), .repeatedHost),
        Refused("3.2: an empty Host", "GET / HTTP/1.1\r\nHost:\r\n\r\n", .invalidHost),
        Refused("3.2: user information in Host", "GET / HTTP/1.1\r\nHost: u@a\r\n\r\n", .invalidHost),
        Refused("3.2: a blank in Host", "GET / HTTP/1.1\r\nHost: a b\r\n\r\n", .invalidHost),
        Refused("3.2: a path in Host", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", .invalidHost),
        Refused("3.2: a port that is not a number", "GET / HTTP/1.1\r\nHost: a:b\r\n\r\n", .invalidHost),
        Refused("3.2: a port beyond the range", "GET / HTTP/1.1\r\nHost: a:65536\r\n\r\n", .invalidHost),
        Refused("3.2: a port alone", "GET / HTTP/1.1\r\nHost: :80\r\n\r\n", .invalidHost),
        Refused("3.2: half an address", "GET / HTTP/1.1\r\nHost: [::1\r\n\r\n", .invalidHost),
        Refused("3.2: bytes behind an address", "GET / HTTP/1.1\r\nHost: [::1]a\r\n\r\n", .invalidHost),
        Refused("3.2: half an escape", "GET / HTTP/1.1\r\nHost: a%4\r\n\r\n", .invalidHost),
        Refused(
            "3.2: an invalid Host beside an absolute target", "GET http://b/ HTTP/1.1\r\nHost: a b\r\n\r\n",
            .invalidHost),
        Refused("3.2: two of Host in HTTP/1.0", "GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n", .repeatedHost),
    ]

    @Test(arguments: lines + fields) func isRefused(_ row: Refused) {
        #expect(throws: row.error) { try request(row.head) }
    }

    @Test func errorsSayWhatToAnswer() {
        #expect(WireError.requestLineTooLong.status == 414)
        #expect(WireError.headTooLarge.status == 431)
        #expect(WireError.tooManyFields.status == 431)
        #expect(WireError.unsupportedTransferCoding.status == 501)
        #expect(WireError.unsupportedVersion.status == 505)
        let others: Set<WireError> = [
            .requestLineTooLong, .headTooLarge, .tooManyFields, .trailersTooLarge, .unsupportedTransferCoding,
            .unsupportedVersion,
        ]
        #expect(WireError.allCases.filter { !others.contains($0) }.allSatisfy { $0.status == 400 })
    }

    @Test func aRequestIsRead() throws {
        let head = try request(
            "POST /a?b=|c HTTP/1.1\r\nhOST: Example.com:8080\r\nX-One: 1\r\nx-two: \t a\tb \r\nX-ONE:2\r\nEmpty:\r\n"
                + "Content-Length: 5\r\nExpect: 100-Continue\r\n\r\n")
        #expect(head.request.method == .post)
        #expect(head.request.scheme == "http")
        #expect(head.request.authority == "Example.com:8080")
        #expect(head.request.path == "/a?b=|c")
        #expect(
            head.request.headerFields.map(\.name.rawName) == [
                "X-One", "x-two", "X-ONE", "Empty", "Content-Length", "Expect",
            ])
        #expect(head.request.headerFields.map(\.value) == ["1", "a\tb", "2", "", "5", "100-Continue"])
        #expect(head.version == .http11)
        #expect(head.framing == .length(5))
        #expect(head.persists)
        #expect(head.expectsContinue)
    }

    /// RFC 9110 5.5: obs-text is opaque, and stays as it is.
    @Test func bytesBeyondASCIIAreKept() throws {
        let value = bytes("caf\u{e9} \u{ff}\u{80}")
        let head = try request(bytes("GET / HTTP/1.1\r\nHost: a\r\nX: ") + value + bytes("\r\n\r\n"))
        #expect(head.request.headerFields.first?.valueBytes == value)
    }

    @Test(
        arguments: [
            ("GET http://b.example HTTP/1.1", "http", "b.example", "/"),
            ("GET HTTP://b.example:81?q HTTP/1.1", "http", "b.example:81", "/?q"),
            ("GET https://[::1]:1/x?y=http://z HTTP/1.1", "https", "[::1]:1", "/x?y=http://z"),
            ("OPTIONS http://b HTTP/1.1", "http", "b", "*"),
            ("OPTIONS http://b/ HTTP/1.1", "http", "b", "/"),
            ("OPTIONS * HTTP/1.1", "http", "host", "*"),
            ("GET //x HTTP/1.1", "http", "host", "//x"),
            ("CONNECT b:443 HTTP/1.1", "http", "b:443", nil),
        ] as [(String, String, String, String?)])
    func theTargetGoesBeforeHost(line: String, scheme: String, authority: String, path: String?) throws {
        let head = try request(line + "\r\nHost: host\r\n\r\n")
        #expect(head.request.scheme == scheme)
        #expect(head.request.authority == authority)
        #expect(head.request.path == path)
    }

    @Test(arguments: [
        "a", "a:", "a:80", "a:0080", "1.2.3.4", "[::1]", "[::ffff:1.2.3.4]:8080", "a_b.example", "%41.example", "a,b",
        "A!$&'()*+;=~",
    ]) func aHostIsTaken(_ host: String) throws {
        #expect(try request("GET / HTTP/1.1\r\nHost: \(host)\r\n\r\n").request.authority == host)
    }

    @Test func anEmptyLineBeforeTheRequestIsPassedOver() throws {
        #expect(try request("\r\nGET /x HTTP/1.1\r\nHost: a\r\n\r\n").request.path == "/x")
    }

    @Test func anEmptyHostIsTakenBesideATargetThatHasOne() throws {
        #expect(try request("GET http://b/ HTTP/1.1\r\nHost:\r\n\r\n").request.authority == "b")
    }

    @Test func http10NeedsNoHost() throws {
        let head = try request("GET / HTTP/1.0\r\n\r\n")
        #expect(head.request.authority == nil)
        #expect(!head.persists)
    }

    /// RFC 9112 9.3.
    @Test(arguments: [
        ("HTTP/1.1", "", true), ("HTTP/1.1", "Connection: close\r\n", false),
        ("HTTP/1.1", "Connection: x, CLOSE\r\n", false), ("HTTP/1.1", "Connection: closed\r\n", true),
        ("HTTP/1.1", "Connection: keep-alive\r\nConnection: close\r\n", false), ("HTTP/1.0", "", false),
        ("HTTP/1.0", "Connection: Keep-Alive\r\n", true), ("HTTP/1.0", "Connection: keep-alive, close\r\n", false),
    ]) func persistence(version: String, fields: String, persists: Bool) throws {
        #expect(try request("GET / \(version)\r\nHost: a\r\n\(fields)\r\n").persists == persists)
    }

    /// RFC 9110 10.1.1: "A server that receives a 100-continue expectation in an HTTP/1.0 request MUST ignore" it.
    @Test func http10ExpectsNothing() throws {
        #expect(try !request("PUT / HTTP/1.0\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n").expectsContinue)
    }

    @Test func limitsHold() throws {
        let limits = HeadLimits(headBytes: 100, startLineBytes: 30, fields: 3)
        #expect(throws: WireError.requestLineTooLong) {
            try request("GET /\(String(repeating: "a", count: 20)) HTTP/1.1\r\nHost: a\r\n\r\n", limits: limits)
        }
        #expect(throws: WireError.headTooLarge) {
            try request("GET / HTTP/1.1\r\nHost: \(String(repeating: "a", count: 80))\r\n\r\n", limits: limits)
        }
        #expect(throws: WireError.headTooLarge) {
            try request("GET / HTTP/1.1\r\nHost: \(String(repeating: "a", count: 90))", limits: limits)
        }
        #expect(throws: WireError.tooManyFields) {
            try request("GET / HTTP/1.1\r\nHost: a\r\na:\r\na:\r\na:\r\n\r\n", limits: limits)
        }
        #expect(
            try request("GET / HTTP/1.1\r\nHost: a\r\na:\r\na:\r\n\r\n", limits: limits).request.headerFields.count == 2
        )
    }

    @Test func aViewIsUsedAgain() throws {
        var view = RequestHeadView()
        for (text, fields) in [
            ("CONNECT a:1 HTTP/1.0\r\nA: b\r\nC: d\r\n\r\n", 2), ("GET /x HTTP/1.1\r\nHost: h\r\n\r\n", 1),
        ] {
            try bytes(text).withUnsafeBytes { try view.parse($0) }
            #expect(view.fields.count == fields)
        }
        #expect(view.targetForm == .origin)
        #expect(view.version == .http11)
        let head = bytes("GET /x HTTP/1.1\r\nHost: h\r\n\r\n")
        head.withUnsafeBytes {
            #expect(view.isMethod("GET", in: $0))
            #expect($0.string(view.path) == "/x")
            #expect(view.authority.map($0.string) == "h")
            #expect(view.first("host", in: $0)?.value == view.authority)
            #expect(view.first("range", in: $0) == nil)
        }
    }
}
