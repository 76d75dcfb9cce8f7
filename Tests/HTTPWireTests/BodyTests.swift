import Testing

@testable import HTTPWire

@Suite struct BodyTests {
    @Test func aLengthEndsContent() {
        let all = decode(.length(5), "helloGET /")
        #expect(all == Decoded(content: bytes("hello"), ended: true, isCompleteAtEOF: true, consumed: 5))
        let cut = decode(.length(5), "hell")
        #expect(cut == Decoded(content: bytes("hell"), consumed: 4))
        #expect(decode(.length(0), "x") == Decoded(ended: true, isCompleteAtEOF: true))
        #expect(decode(.none, "x") == Decoded(ended: true, isCompleteAtEOF: true))
    }

    @Test func theEndOfTheConnectionEndsContent() {
        #expect(decode(.untilClose, "abc") == Decoded(content: bytes("abc"), isCompleteAtEOF: true, consumed: 3))
        #expect(decode(.untilClose, "").isCompleteAtEOF)
    }

    @Test(arguments: [
        ("5\r\nhello\r\n0\r\n\r\n", "hello"), ("0\r\n\r\n", ""), ("00\r\n\r\n", ""),
        ("A\r\n0123456789\r\n1\r\nx\r\n0\r\n\r\n", "0123456789x"),
        ("00000000000000a\r\n0123456789\r\n0\r\n\r\n", "0123456789"),
        // 7.1.1: extensions are passed over.
        ("1;a=b;c=\"d;e\"\r\nx\r\n0;z\r\n\r\n", "x"), ("1 ; a\r\nx\r\n0\t;\ta\r\n\r\n", "x"),
        ("1;a=\"x;y\"\r\nx\r\n0 ; a = b\r\n\r\n", "x"), ("1;a ;b = \"\" ; c\r\nx\r\n0\r\n\r\n", "x"),
        ("1;a=\"\\\"=\\\\ #\t\"\r\nx\r\n0;a=b ;c\r\n\r\n", "x"),
        // 7.1.2: trailer fields are passed over.
        ("1\r\nx\r\n0\r\nA: b\r\nC:\r\n\r\n", "x"),
        // Data is opaque.
        ("4\r\n\r\n\r\n\r\n0\r\n\r\n", "\r\n\r\n"), ("5\r\n0\r\n\r\n\r\n0\r\n\r\n", "0\r\n\r\n"),
    ]) func chunksAreRead(text: String, content: String) {
        let expected = Decoded(content: bytes(content), ended: true, isCompleteAtEOF: true, consumed: text.utf8.count)
        #expect(decode(.chunked, text) == expected)
        // Bytes behind the end stay with the caller; each cut gives the same.
        #expect(decode(.chunked, text + "HTTP/1.1 200") == expected)
        #expect(decode(.chunked, bytes(text).map { [$0] }).content == expected.content)
        for end in 0..<text.utf8.count {
            let cut = decode(.chunked, [Array(bytes(text)[..<end])])
            #expect(cut.error == nil && !cut.ended && !cut.isCompleteAtEOF)
        }
    }

    @Test(
        arguments: [
            ("\r\n", .invalidChunkSize), ("-1\r\n", .invalidChunkSize), ("+1\r\n", .invalidChunkSize),
            ("0x1\r\n", .invalidChunkSize),
            (" 1\r\n", .invalidChunkSize), ("g\r\n", .invalidChunkSize), ("1g\r\n", .invalidChunkSize),
            (";a\r\n", .invalidChunkSize),
            ("1 \r\nx\r\n", .invalidChunkSize), ("1_0\r\n", .invalidChunkSize),
            ("fffffffffffffffff\r\n", .invalidChunkSize), ("0000000000000001\r\n", .invalidChunkSize),
            ("1\nx\r\n", .invalidChunkSize), ("1\rx\r\n", .bareCarriageReturn), ("1;a\nx", .bareLineFeed),
            ("1;a\rx", .bareCarriageReturn), ("1;a\0\r\n", .controlCharacter),
            ("1;a=\"\r\nx\r\n\"", .invalidChunkExtension), ("0;a=\"\r\n\r\n", .invalidChunkExtension),
            ("1;@@(\r\n", .invalidChunkExtension), ("1;\r\n", .invalidChunkExtension),
            ("1; \r\n", .invalidChunkExtension), ("1;a=\r\n", .invalidChunkExtension),
            ("1;a= \r\n", .invalidChunkExtension), ("1;a \r\n", .invalidChunkExtension),
            ("1;a=b \r\n", .invalidChunkSize), ("1;a=b c\r\n", .invalidChunkSize),
            ("1;a=\"b\"c\r\n", .invalidChunkExtension), ("1;a b\r\n", .invalidChunkExtension),
            ("1;=b\r\n", .invalidChunkExtension), ("1;a==b\r\n", .invalidChunkExtension),
            ("1;;a\r\n", .invalidChunkExtension), ("1;a;\r\n", .invalidChunkExtension),
            ("1;a=\"b\\\r\n\"\r\n", .invalidChunkExtension), ("1;a=\"\n", .bareLineFeed),
            ("1;a=\"\u{7f}\"\r\n", .controlCharacter), ("1;\u{e9}\r\n", .invalidChunkExtension),
            ("1\r\nxy\r\n", .invalidChunkEnd),
            ("1\r\nx\n", .invalidChunkEnd), ("1\r\nx\r1", .invalidChunkEnd), ("1\r\nx0\r\n\r\n", .invalidChunkEnd),
            ("0\r\n\n", .invalidFieldName), ("0\r\n\rx", .bareCarriageReturn), ("0\r\nA\r\n\r\n", .invalidFieldName),
            ("0\r\n: b\r\n\r\n", .invalidFieldName), ("0\r\n A: b\r\n\r\n", .invalidFieldName),
            ("0\r\nA : b\r\n", .invalidFieldName),
            ("0\r\nA: \0\r\n\r\n", .controlCharacter), ("0\r\nA: b\n\r\n", .bareLineFeed),
            ("0\r\nA: b\rc", .bareCarriageReturn),
        ] as [(String, WireError)]) func chunksAreRefused(text: String, error: WireError)
    {
        let result = decode(.chunked, text)
        #expect(result.error == error)
        #expect(!result.ended && !result.isCompleteAtEOF)
        #expect(decode(.chunked, bytes(text).map { [$0] }) == result)
    }

    @Test func whatIsPassedOverIsBounded() {
        let long = String(repeating: "x", count: 17 << 10)
        #expect(decode(.chunked, "1;" + long).error == .chunkExtensionsTooLong)
        #expect(
            decode(.chunked, String(repeating: "1;\(long.prefix(200))\r\nx\r\n", count: 100)).error
                == .chunkExtensionsTooLong)
        #expect(decode(.chunked, "0\r\nA: " + long).error == .trailersTooLarge)
        #expect(decode(.chunked, "0\r\n" + String(repeating: "A: b\r\n", count: 4000)).error == .trailersTooLarge)
        // Beside as many bytes of data, extensions are welcome.
        let fair = String(repeating: "100;\(long.prefix(200))\r\n\(long.prefix(256))\r\n", count: 200) + "0\r\n\r\n"
        #expect(decode(.chunked, fair).ended)
    }

    @Test func anErrorStays() throws {
        var decoder = BodyDecoder(.chunked)
        for text in ["x", "0\r\n\r\n"] {
            var position = 0
            #expect(throws: WireError.invalidChunkSize) {
                try bytes(text).withUnsafeBytes { _ = try decoder.next($0, at: &position) }
            }
        }
    }

    @Test func theLengthLeftIsKnown() throws {
        var decoder = BodyDecoder(.length(10))
        var position = 0
        #expect(decoder.remaining == 10)
        _ = try bytes("abc").withUnsafeBytes { try decoder.next($0, at: &position) }
        #expect(decoder.remaining == 7)
        #expect(BodyDecoder(.chunked).remaining == nil)
    }
}
