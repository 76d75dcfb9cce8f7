import HTTPTypes
import Testing

@testable import HTTPWire

@Suite struct WriterTests {
    @Test func aRequestIsWritten() throws {
        var fields = HTTPFields()
        fields.append(HTTPField(name: HTTPField.Name("X-One")!, value: "1"))
        fields.append(HTTPField(name: HTTPField.Name("Host")!, value: "other"))
        fields.append(HTTPField(name: HTTPField.Name("x-one")!, value: bytes("\u{e9}\u{80}")))
        let message = HTTPRequest(method: .put, scheme: "http", authority: "a:1", path: nil, headerFields: fields)
        var out = bytes("kept")
        try MessageWriter.append(message, additional: [.contentLength: "5"], to: &out)
        #expect(
            out
                == bytes(
                    "keptPUT / HTTP/1.1\r\nHost: a:1\r\nX-One: 1\r\nx-one: \u{e9}\u{80}\r\nContent-Length: 5\r\n\r\n"))
    }

    @Test func aRequestReadsAsWritten() throws {
        for (method, path) in [(HTTPRequest.Method.get, "/a?b"), (.options, "*"), (.connect, nil)] as [(_, String?)] {
            let message = HTTPRequest(
                method: method, scheme: "http", authority: "[::1]:80", path: path,
                headerFields: [.accept: "a, b", .cookie: "x", .userAgent: "", HTTPField.Name("x-Y")!: "z"])
            var out: [UInt8] = []
            try MessageWriter.append(message, to: &out)
            let head = try request(out)
            #expect(head.request == message)
            #expect(head.request.headerFields.map(\.name.rawName) == message.headerFields.map(\.name.rawName))
        }
    }

    @Test(arguments: [
        ("a b", "/"), ("", "/"), ("u@a", "/"), ("a", "/x y"), ("a", "/\u{e9}"), ("a", "/x HTTP/1.1 /y"), ("a", "/x#y"),
    ]) func aTargetThatWouldNotReadBackIsRefused(authority: String, path: String) {
        var out = bytes("kept")
        #expect(throws: WireError.unwritable) {
            try MessageWriter.append(
                HTTPRequest(method: .get, scheme: "http", authority: authority, path: path), to: &out)
        }
        #expect(out == bytes("kept"))
    }

    @Test func aResponseReadsAsWritten() throws {
        let status = HTTPResponse.Status(code: 599, reasonPhrase: "caf\u{e9}")
        let message = HTTPResponse(status: status, headerFields: [.age: "1", .contentLength: "2", .setCookie: "a"])
        var out: [UInt8] = []
        try MessageWriter.append(message, to: &out)
        let head = try response(out)
        #expect(head.response == message)
        #expect(head.response.status.reasonPhrase == "caf\u{e9}")
    }

    @Test func aReasonNeverBreaksTheLine() throws {
        var out: [UInt8] = []
        try MessageWriter.appendStatusLine(.init(code: 200, reasonPhrase: "a\r\nb\u{2603}\u{85}"), to: &out)
        #expect(out.filter { $0 < 0x20 } == [0x0D, 0x0A])
        #expect(throws: WireError.unwritable) { try MessageWriter.appendStatusLine(.init(code: 99), to: &out) }
    }

    @Test(arguments: [
        ("X", "a\rb"), ("X", "a\nb"), ("X", "a\0b"), ("X", "abcdefgh\u{7f}"), ("X Y", "a"), ("", "a"), ("X:", "a"),
        ("X\r\n", "a"),
    ]) func aFieldThatCouldEndALineIsRefused(name: String, value: String) {
        var out = bytes("kept")
        #expect(throws: WireError.unwritable) {
            try bytes(name).withUnsafeBytes { name in
                try bytes(value).withUnsafeBytes { try MessageWriter.appendField(name: name, value: $0, to: &out) }
            }
        }
        #expect(out == bytes("kept"))
    }

    @Test(arguments: [1, 9, 10, 15, 16, 255, 4096, 1_000_000]) func chunksReadAsWritten(count: Int) {
        let data = [UInt8](repeating: 0x0D, count: count)
        var out: [UInt8] = []
        MessageWriter.appendChunkStart(count: count, to: &out)
        out += data + MessageWriter.chunkEnd + MessageWriter.lastChunk
        #expect(
            decode(.chunked, [out]) == Decoded(content: data, ended: true, isCompleteAtEOF: true, consumed: out.count))
    }
}
