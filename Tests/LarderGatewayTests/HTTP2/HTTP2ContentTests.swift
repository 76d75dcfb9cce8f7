import HTTPTestSupport
import HTTPTypes
import LarderGateway
import LarderHTTP
import LarderNIOTransport
import TestOrigin
import TestSupport
import Testing

/// Whether a request over HTTP/2 has content says the end of its stream, and nothing else (RFC 9113 section 8.1).
struct HTTP2ContentTests {
    private func withOrigin(
        _ change: @escaping (inout GatewayConfiguration) -> Void = { _ in },
        _ body: (TestOrigin, Setting, RawHTTP2Client) async throws -> Void
    ) async throws {
        let origin = try await TestOrigin.start {
            .ok("\($0.method) \($0.text)").header("Cache-Control", "max-age=3600")
        }
        let transport = NIOTransport()
        try await withTLS(transport) {
            $0.routes.otherwise = try OriginServer(origin.url)
            change(&$0)
        } _: { setting, port in
            let client = try await RawHTTP2Client.connect(to: port)
            try await body(origin, setting, client)
            await client.close()
        }
        await transport.close()
        await origin.stop()
    }

    private static let methods = ["DELETE", "GET", "OPTIONS", "HEAD", "POST", "PATCH", "REPORT"]

    @Test(arguments: methods) func contentThatComesLaterReachesTheOrigin(_ method: String) async throws {
        try await withOrigin { origin, setting, client in
            try await client.send(RawHTTP2Client.request(1, method, "/items", end: false))
            try await client.settle()
            try await client.send(RawHTTP2Client.data(1, "{\"ids\""))
            try await client.settle()
            try await client.send(RawHTTP2Client.data(1, ":[7]}", end: true))
            try await #expect(client.answer(1)?.status == 200)
            let content = try await client.content(1)
            #expect(content == (method == "HEAD" ? [] : Array("\(method) {\"ids\":[7]}".utf8)))
            #expect(origin.history.requests.map(\.text) == ["{\"ids\":[7]}"])
        }
    }

    @Test(arguments: methods) func contentThatComesWithTheHeadReachesTheOrigin(_ method: String) async throws {
        try await withOrigin { origin, setting, client in
            try await client.send(
                RawHTTP2Client.request(1, method, "/items", end: false), RawHTTP2Client.data(1, "[7]", end: true))
            try await #expect(client.answer(1)?.status == 200)
            #expect(origin.history.requests.map(\.text) == ["[7]"])
        }
    }

    @Test(arguments: methods) func contentThatBreaksOffIsNotACompleteRequest(_ method: String) async throws {
        try await withOrigin { origin, setting, client in
            try await client.send(RawHTTP2Client.request(1, method, "/items", end: false))
            try await client.settle()
            try await client.send(RawHTTP2Client.data(1, "{\"ids\""))
            await origin.wait { !$0.requests.isEmpty }
            try await client.send(RawHTTP2Client.frame(RawHTTP2Client.reset, 0, 1, [0, 0, 0, 8]))
            await origin.wait { $0.connectionsOpen == 0 }
            #expect(origin.requests.isEmpty)
        }
    }

    @Test func aHeadThatIsAllOfARequestThatBreaksOffStaysHere() async throws {
        try await withOrigin { origin, setting, client in
            try await client.send(RawHTTP2Client.request(1, "DELETE", "/items", end: false))
            try await client.settle()
            try await client.send(RawHTTP2Client.frame(RawHTTP2Client.reset, 0, 1, [0, 0, 0, 8]))
            try await client.send(RawHTTP2Client.request(3, "GET", "/other"))
            try await #expect(client.answer(3)?.status == 200)
            #expect(origin.history.requests.map(\.target) == ["/other"])
        }
    }

    /// Many clients end a GET so.
    @Test(arguments: [false, true]) func anEmptyFrameAtTheEndMeansNoContent(_ isLater: Bool) async throws {
        try await withOrigin { origin, setting, client in
            for stream in [1, 3] {
                try await client.send(RawHTTP2Client.request(stream, end: false))
                if isLater { try await client.settle() }
                try await client.send(RawHTTP2Client.data(stream, "", end: true))
                try await #expect(client.content(stream) == Array("GET ".utf8))
            }
            // The second was a hit.
            #expect(origin.requests.count == 1)
            #expect(origin.requests[0]["Transfer-Encoding"] == nil)
            #expect(origin.requests[0]["Content-Length"] == nil)
        }
    }

    @Test func aLengthOfZeroMeansNoContent() async throws {
        try await withOrigin { origin, setting, client in
            try await client.send(RawHTTP2Client.request(1, "DELETE", "/", [("content-length", "0")], end: false))
            try await #expect(client.answer(1)?.status == 200)
            try await client.send(RawHTTP2Client.request(3, "DELETE", "/", [("content-length", "0")]))
            try await #expect(client.content(3) == Array("DELETE ".utf8))
        }
    }

    @Test func aRequestWhoseEndDoesNotComeTimesOut() async throws {
        try await withOrigin { origin, setting, client in
            try await client.send(RawHTTP2Client.request(1, end: false))
            try await client.settle()
            await setting.pass(seconds: 11)
            try await #expect(client.answer(1)?.status == 408)
            #expect(origin.history.requests.isEmpty)
        }
    }

    @Test func continueIsSentWhenTheOriginTakesContent() async throws {
        let gate = Gate()
        let transport = ScriptedTransport { request throws(TransportError) in
            try? await gate.wait()
            let pull = request.body?.makePull()
            var text = ""
            while let piece = try? await pull?() { text += String(decoding: piece, as: UTF8.self) }
            return .text(text)
        }
        try await withTLS(transport) { setting, port in
            let client = try await RawHTTP2Client.connect(to: port)
            try await client.send(RawHTTP2Client.request(1, "DELETE", "/", [("expect", "100-continue")], end: false))
            await gate.arrival()
            try await client.settle()
            gate.open()
            let interim = try await client.next { $0.type == RawHTTP2Client.headers }
            #expect(interim?.status == 100)
            try await client.send(RawHTTP2Client.data(1, "now", end: true))
            try await #expect(client.content(1) == Array("now".utf8))
            await client.close()
        }
    }

    @Test(arguments: ["+3", "3,3", "3, 3", "-3", "0x3", "3a", "", "99999999999999999999"])
    func aMalformedLengthIsRefused(_ length: String) async throws {
        try await withOrigin { origin, setting, client in
            try await client.send(
                RawHTTP2Client.request(1, "POST", "/", [("content-length", length)], end: false),
                RawHTTP2Client.data(1, "abc", end: true))
            let answer = try await client.answer(1)
            #expect(answer?.status == 400 || answer?.type == RawHTTP2Client.reset)
            try await client.send(RawHTTP2Client.request(3, "GET", "/other"))
            try await #expect(client.content(3) == Array("GET ".utf8))
            #expect(origin.history.requests.map(\.target) == ["/other"])
        }
    }

    @Test func aLengthThatIsSaidTwiceIsRefused() async throws {
        try await withOrigin { origin, setting, client in
            let fields = [("content-length", "3"), ("content-length", "3")]
            try await client.send(
                RawHTTP2Client.request(1, "POST", "/", fields, end: false), RawHTTP2Client.data(1, "abc", end: true))
            try await #expect(client.answer(1)?.status == 400)
            #expect(origin.history.requests.isEmpty)
        }
    }

    /// RFC 9113 section 8.1.1.
    @Test(arguments: ["abc", "abcdefg"]) func contentOfAnotherLengthFails(_ content: String) async throws {
        try await withOrigin { origin, setting, client in
            try await client.send(RawHTTP2Client.request(1, "POST", "/", [("content-length", "5")], end: false))
            try await client.settle()
            try await client.send(RawHTTP2Client.data(1, content, end: true))
            let answer = try await client.answer(1)
            #expect(answer?.type == RawHTTP2Client.reset && answer?.code == 1)
            // The connection and its other streams still work.
            try await client.send(RawHTTP2Client.request(3, "GET", "/other"))
            try await #expect(client.content(3) == Array("GET ".utf8))
            #expect(origin.requests.map(\.target) == ["/other"])
        }
    }

    /// What is reset in the read that brings its head is not begun: nothing would end it.
    @Test func aRequestThatIsResetAtOnceTakesNoPlace() async throws {
        try await withOrigin {
            $0.limits.requestsPerClient = 2; $0.limits.limitsLoopback = true
        } _: {
            origin, setting, client in
            let wrongs = [
                RawHTTP2Client.frame(RawHTTP2Client.reset, 0, 0, [0, 0, 0, 8]), RawHTTP2Client.grow(0, by: 0),
                RawHTTP2Client.data(0, "too long for it"),
            ]
            for stream in 0..<12 {
                let id = 2 * stream + 1
                var wrong = wrongs[stream % 3]
                wrong[8] = UInt8(id)
                try await client.send(
                    RawHTTP2Client.request(id, "POST", "/", [("content-length", "5")], end: false), wrong)
            }
            try await client.send(
                RawHTTP2Client.request(99, "POST", "/", end: false), RawHTTP2Client.data(99, "5", end: true))
            try await #expect(client.answer(99)?.status == 200)
            #expect(origin.requests.map(\.text) == ["5"])
        }
    }

    /// A slow client is not one whose head is late, also where no read ends with a frame.
    @Test func contentMayComeSlowlyInPiecesOfFrames() async throws {
        try await withOrigin { origin, setting, client in
            try await client.send(RawHTTP2Client.request(1, "POST", "/", end: false))
            await setting.settles()
            let before = await setting.gateway.readCounters().bytesIn
            let frames = (0..<10).flatMap { RawHTTP2Client.data(1, String(repeating: "x", count: 5_000), end: $0 == 9) }
            for start in stride(from: 0, to: frames.count, by: 4_000) {
                let end = min(start + 4_000, frames.count)
                try await client.send(Array(frames[start..<end]))
                try await waitWhile { await setting.gateway.readCounters().bytesIn < before + UInt64(end) }
                await setting.pass(seconds: 8)
            }
            try await #expect(client.content(1)?.count == 50_005)
        }
    }

    /// Not only content.
    @Test func allBytesFromAClientCount() async throws {
        try await withOrigin { origin, setting, client in
            await setting.settles()
            let before = await setting.gateway.readCounters().bytesIn
            let request = RawHTTP2Client.request(1, "GET", "/", end: true)
            try await client.send(request)
            try await #expect(client.answer(1)?.status == 200)
            await #expect(setting.gateway.readCounters().bytesIn >= before + UInt64(request.count))
        }
    }

    /// A head has a limit in time, also one whose parts keep coming.
    @Test func aHeadThatDoesNotEndTimesOut() async throws {
        try await withOrigin { origin, setting, client in
            try await client.send(RawHTTP2Client.frame(RawHTTP2Client.headers, 1, 1, [0x82]))
            for _ in 0..<2 {
                try await client.send(RawHTTP2Client.frame(9, 0, 1, [0x87]))
                await setting.settles()
                await setting.pass(seconds: 6)
            }
            try await setting.waitForConnections(0)
            await #expect(setting.gateway.readCounters().timeouts == 1)
        }
    }
}
