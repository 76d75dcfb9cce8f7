import CZlib
import HTTPTestSupport
import HTTPTypes
import Larder
import LarderGateway
import TestOrigin
import TestSupport
import Testing

/// Stored gzip members, sent to clients that accept gzip.
struct CompressionTests {
    private static func text(_ length: Int) -> [UInt8] {
        Array(String(repeating: "a line of text\n", count: length / 15 + 1).utf8.prefix(length))
    }

    private static let fields: HTTPFields = [
        .cacheControl: "max-age=60", .contentType: "text/html", .eTag: "\"one\"",
    ]

    private static func inflated(_ member: [UInt8], _ length: Int) -> [UInt8]? {
        var stream = z_stream()
        var member = member
        guard inflateInit2_(&stream, 31, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK else { return nil }
        defer { inflateEnd(&stream) }
        var result = [UInt8](repeating: 0, count: length + 1)
        let code = member.withUnsafeMutableBufferPointer { input in
            result.withUnsafeMutableBufferPointer { output in
                stream.next_in = input.baseAddress
                stream.avail_in = UInt32(input.count)
                stream.next_out = output.baseAddress
                stream.avail_out = UInt32(output.count)
                return inflate(&stream, Z_FINISH)
            }
        }
        return code == Z_STREAM_END ? Array(result.prefix(Int(stream.total_out))) : nil
    }

    private func run(
        _ text: [UInt8], _ fields: HTTPFields = fields, _ body: (RawClient, Setting) async throws -> Void
    ) async throws {
        let transport = ScriptedTransport { _ in .bytes(text, fields) }
        try await withGateway(transport: transport, caching: { $0.compressesBodies = true }) { setting in
            let client = try await setting.connect()
            try await #expect(client.exchange(get("/")).body == text)
            try await setting.store.perform { try $0.flush() }
            try await body(client, setting)
            #expect(transport.requests.count == 1)
            try await client.close()
        }
    }

    @Test(arguments: [3_000, 500_000, 3_000_000]) func theMemberIsSentAsItIs(_ length: Int) async throws {
        let text = Self.text(length)
        try await run(text) { client, setting in
            try await #expect(setting.store.perform { try $0.statistics().compressionGain } > .zero)
            for accepted in ["gzip", "br, gzip;q=0.5", "*"] {
                try await client.send(get("/", "Accept-Encoding: \(accepted)"))
                let coded = try await client.response()
                #expect(coded["Content-Encoding"] == "gzip" && coded["Vary"] == "Accept-Encoding")
                #expect(coded["ETag"] == "W/\"one\"" && coded["Accept-Ranges"] == nil)
                #expect(coded.body.count < length / 4 && Self.inflated(coded.body, length) == text)
            }
            for refused in ["", "Accept-Encoding: br", "Accept-Encoding: gzip;q=0", "Accept-Encoding: identity"] {
                try await client.send(get("/", refused))
                let plain = try await client.response()
                #expect(plain.body == text && plain["Content-Encoding"] == nil, "\(refused)")
                #expect(plain["ETag"] == "\"one\"" && plain["Vary"] == "Accept-Encoding", "\(refused)")
            }
        }
    }

    /// In the index, and in files: those are held in memory when they are asked for again.
    @Test(arguments: [2_000, 100_000, 900_000]) func membersAreSentFromMemory(_ length: Int) async throws {
        var random = SeededGenerator(seed: 1)
        let words = (0..<length / 4).map { _ in "w\(Int.random(in: 0..<4_096, using: &random))" }
        let text = Array(words.joined(separator: " ").utf8.prefix(length))
        try await run(text) { client, setting in
            func ask(_ accepted: String, method: String = "GET") async throws -> RawResponse {
                try await client.send(get("/", "Accept-Encoding: \(accepted)", method: method))
                return try await client.response(to: method)
            }
            let first = try await ask("gzip")
            #expect(Self.inflated(first.body, length) == text)
            // The shortest is in the index, and the tier is not asked for it.
            let misses = try await setting.store.perform { try $0.statistics().memoryTier.misses }
            if length < 50_000 {
                _ = try await ask("gzip")
                try await #expect(setting.store.perform { try $0.statistics().memoryTier.misses } == misses)
            }
            let held = { try await setting.store.perform { try $0.statistics().memoryTier.count } }
            try await waitWhile {
                _ = try await ask("gzip")
                return length > 50_000 ? try await held() == 0 : false
            }
            let next = try await ask("gzip")
            #expect(next.body == first.body && next["Content-Length"] == "\(first.body.count)")
            #expect(next["Content-Encoding"] == "gzip" && next["ETag"] == "W/\"one\"")
            try await #expect(ask("identity").body == text)
            let head = try await ask("gzip", method: "HEAD")
            #expect(head.body.isEmpty && head["Content-Length"] == "\(first.body.count)")
            try await #expect(ask("gzip").body == first.body)
            // The body itself is not.
            if length > 50_000 { try await #expect(held() == 1) }
        }
    }

    /// What no client takes need not be held.
    @Test func membersThatAreNotSentAreNotHeld() async throws {
        let text = (0..<400_000).map { UInt8(truncatingIfNeeded: ($0 &* 0x9E37_79B1) >> 17) & 63 + 48 }
        try await run(text) { client, setting in
            for _ in 0..<5 { try await #expect(client.exchange(get("/")).body == text) }
            try await #expect(setting.store.perform { try $0.statistics().memoryTier.count } == 0)
        }
    }

    @Test func rangesConditionsAndNoTransform() async throws {
        let text = Self.text(50_000)
        try await run(text) { client, _ in
            try await client.send(get("/", "Accept-Encoding: gzip\r\nRange: bytes=10-19"))
            let part = try await client.response()
            #expect(part.status == 206 && part.body == Array(text[10..<20]) && part["ETag"] == "\"one\"")
            #expect(part["Vary"] == "Accept-Encoding" && part["Content-Encoding"] == nil)
            try await client.send(get("/", "Accept-Encoding: gzip\r\nIf-None-Match: W/\"one\""))
            let weak = try await client.response()
            #expect(weak.status == 304 && weak["ETag"] == "W/\"one\"")
            try await client.send(get("/", "Accept-Encoding: gzip\r\nIf-None-Match: \"one\""))
            let strong = try await client.response()
            #expect(strong.status == 304 && strong["ETag"] == "W/\"one\"" && strong["Vary"] == "Accept-Encoding")
            for condition in ["W/\"one\"", "\"one\""] {
                try await client.send(get("/", "If-None-Match: \(condition)"))
                let identity = try await client.response()
                #expect(identity.status == 304 && identity["ETag"] == "\"one\"")
                #expect(identity["Vary"] == "Accept-Encoding")
            }
            // A range of the weak representation is not one of the strong one: all of it is sent.
            try await client.send(get("/", "Range: bytes=10-19\r\nIf-Range: W/\"one\""))
            try await #expect(client.response().body == text)
            try await client.send(get("/", "Accept-Encoding: gzip\r\nCache-Control: no-transform"))
            let untouched = try await client.response()
            #expect(untouched.body == text && untouched["Content-Encoding"] == nil)
        }
    }

    /// RFC 9110 section 9.3.2.
    @Test func headHasTheFieldsOfGet() async throws {
        try await run(Self.text(50_000)) { client, _ in
            for accepted in ["gzip", "identity"] {
                try await client.send(get("/", "Accept-Encoding: \(accepted)"))
                let whole = try await client.response()
                try await client.send(get("/", "Accept-Encoding: \(accepted)", method: "HEAD"))
                let head = try await client.response(to: "HEAD")
                #expect(head.status == 200 && head.body.isEmpty)
                for name in ["Content-Encoding", "Content-Length", "Content-Type", "ETag", "Vary", "Accept-Ranges"] {
                    #expect(head[name] == whole[name], "\(name) \(accepted)")
                }
            }
        }
    }

    @Test(arguments: [
        (HTTPField.Name.cacheControl, "max-age=60, no-transform"), (.contentEncoding, "br"),
        (.contentType, "image/png"),
    ])
    func responsesThatAreNotToBeChangedAreStoredAsTheyCame(_ name: HTTPField.Name, _ value: String) async throws {
        var fields = Self.fields
        fields[name] = value
        let text = Self.text(50_000)
        try await run(text, fields) { client, setting in
            try await client.send(get("/", "Accept-Encoding: gzip"))
            let response = try await client.response()
            #expect(response.body == text && response["ETag"] == "\"one\"")
            try await #expect(setting.store.perform { try $0.statistics().compressionGain } == .zero)
        }
    }
}
