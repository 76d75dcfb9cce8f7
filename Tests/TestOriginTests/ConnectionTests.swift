import HTTPTestSupport
import TestOrigin
import Testing

/// Requests are recorded as they came; connections, scripts and gates keep their order.
struct ConnectionTests {
    @Test func requestsAreRecorded() async throws {
        try await withOrigin { _ in
            .ok()
        } _: { origin in
            let one = try await RawClient.connect(to: origin.port)
            _ = try await one.exchange(get("/a?b", "X-One: 1", "x-one: 2"))
            _ = try await one.exchange("PUT /b HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello")
            let chunked = "POST /b HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
            _ = try await exchange(origin.port, chunked + "3;ext\r\nabc\r\n02\r\nde\r\n0\r\nT: x\r\n\r\n")
            let requests = origin.requests
            #expect(requests.map(\.method) == ["GET", "PUT", "POST"])
            #expect(requests.map(\.target) == ["/a?b", "/b", "/b"])
            #expect(requests.map(\.connection) == [1, 1, 2])
            #expect(requests.map(\.order) == [1, 2, 3])
            #expect(requests.map(\.count) == [1, 1, 2])
            #expect(requests.map(\.text) == ["", "hello", "abcde"])
            #expect(requests[0]["X-One"] == "1, 2")
            #expect(requests[0].fields.map(\.name.rawName) == ["Host", "X-One", "x-one"])
            #expect(requests[2].trailers.map(\.value) == ["x"])
            #expect(String(decoding: requests[0].rawHead, as: UTF8.self) == get("/a?b", "X-One: 1", "x-one: 2"))
            try await one.close()
        }
    }

    @Test func pipelinedRequestsAreAnsweredInOrder() async throws {
        let gate = Gate()
        try await withOrigin { request in
            request.target == "/1" ? .ok("1").holding(at: gate) : .ok(request.target)
        } _: {
            origin in
            let client = try await RawClient.connect(to: origin.port)
            try await client.send(get("/1") + get("/2") + get("/3"))
            await gate.arrival()
            #expect(origin.requests.map(\.target) == ["/1"])
            gate.open()
            try await #expect(client.response().text == "1")
            try await #expect(client.response().text == "/2")
            try await #expect(client.response().text == "/3")
            try await client.close()
        }
    }

    @Test func scriptsAnswerInTurnAndTheLastRepeats() async throws {
        try await withOrigin { origin in
            origin.script("/a", .ok("first"), .status(500), .ok("last"))
            origin.script("/a?q") { _ in .ok("by target") }
            let client = try await RawClient.connect(to: origin.port)
            try await #expect(client.exchange(get("/a")).text == "first")
            try await #expect(client.exchange(get("/a?q")).text == "by target")
            try await #expect(client.exchange(get("/a?other")).status == 500)
            try await #expect(client.exchange(get("/a")).text == "last")
            try await #expect(client.exchange(get("/a")).text == "last")
            try await #expect(client.exchange(get("/b")).status == 404)
            try await client.close()
        }
    }

    @Test func gatesHoldBetweenPieces() async throws {
        let gate = Gate()
        try await withOrigin { _ in
            .ok("ab").then(gate).then("cd")
        } _: { origin in
            let client = try await RawClient.connect(to: origin.port)
            try await client.send(get("/"))
            _ = try await client.head()
            try await #expect(client.bytes(2) == Array("ab".utf8))
            await gate.arrival()
            #expect(gate.arrivals == 1)
            gate.open()
            try await #expect(client.bytes(2) == Array("cd".utf8))
            try await client.close()
        }
    }

    @Test func aHoldingAnswerEndsWhenTheClientLeaves() async throws {
        let gate = Gate()
        try await withOrigin { request in
            request.count == 1 ? .ok("late").holding(at: gate) : .ok("b")
        } _: { origin in
            let client = try await RawClient.connect(to: origin.port)
            try await client.send(get("/"))
            await gate.arrival()
            try await client.reset()
            await origin.wait { $0.connectionsOpen == 0 }
            try await #expect(exchange(origin.port, get("/")).text == "b")
        }
    }

    @Test func theEndOfTheConnectionIsTheRequestsWish() async throws {
        try await withOrigin { _ in
            .ok("x")
        } _: { origin in
            for text in [get("/", "Connection: close"), "GET / HTTP/1.0\r\n\r\n"] {
                let client = try await RawClient.connect(to: origin.port)
                try await #expect(client.exchange(text).text == "x")
                try await #expect(client.rest().isEmpty)
            }
            let client = try await RawClient.connect(to: origin.port)
            let text = "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"
            try await #expect(client.exchange(text).text == "x")
            try await #expect(client.exchange(text).text == "x")
            try await client.close()
        }
    }

    @Test func continueIsSentUnlessTheHeadIsAnswered() async throws {
        try await withOrigin { _ in
            .ok("read")
        } _: { origin in
            origin.script("/early", onHead: true) { _ in .status(413, "too much") }
            let fields = "Host: h\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n"
            let client = try await RawClient.connect(to: origin.port)
            try await client.send("POST / HTTP/1.1\r\n" + fields)
            try await #expect(client.response().status == 100)
            try await client.send("abc")
            try await #expect(client.response().text == "read")
            try await client.send("POST /early HTTP/1.1\r\n" + fields)
            try await #expect(client.response().status == 413)
            #expect(origin.history.requests.last?.isComplete == false)
            try await client.send("abc")
            await origin.wait { $0.requests.last?.isComplete == true }
            try await client.close()
        }
    }

    @Test func stoppingClosesEverything() async throws {
        let origin = try await TestOrigin.start { _ in .silent }
        let client = try await RawClient.connect(to: origin.port)
        try await client.send(get("/"))
        await origin.wait { $0.requests.count == 1 }
        await origin.stop()
        try await #expect(client.rest().isEmpty)
        await #expect(throws: (any Error).self) { try await RawClient.connect(to: origin.port) }
    }
}
