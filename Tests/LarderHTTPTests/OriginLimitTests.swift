import HTTPTestSupport
import HTTPTypes
import Locks
import TestSupport
import Testing

@testable import LarderHTTP

/// Places at origins, and the time for a whole fetch.
@Suite struct OriginLimitTests {
    /// All hosts are one server, as behind a reverse proxy.
    private struct OneServer: Transport {
        let inner: ScriptedTransport

        func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
            try await inner.send(request)
        }

        func endpoint(for request: TransportRequest) -> String { "http://10.0.0.1:80" }
    }

    /// Answers when the gate opens.
    private func hang(_ fixture: Fixture, _ gate: Latch) {
        fixture.transport.handler = { _ throws(TransportError) in
            await gate.wait()
            return .answer(200, [:], "x")
        }
    }

    private func error(_ body: () async throws -> Void) async -> FetchError? {
        do {
            try await body()
            return nil
        } catch {
            return error as? FetchError
        }
    }

    // MARK: Places

    @Test func namesOfOneServerShareItsPlaces() async throws {
        try await Fixture.run { fixture in
            let gate = Latch()
            hang(fixture, gate)
            var configuration = HTTPCacheConfiguration()
            configuration.requestsPerHost = 1
            configuration.timeouts.queue = .seconds(120)
            let cache = HTTPCache(
                store: fixture.store, transport: OneServer(inner: fixture.transport), configuration: configuration)
            let tasks = ["a", "b"].map { name in
                Task { String(decoding: try await cache.fetch("http://\(name).example/").body.bytes(), as: UTF8.self) }
            }
            try await waitWhile { cache.waitingRequests < 1 }
            #expect(fixture.transport.sent.count == 1)
            gate.open()
            for task in tasks {
                let answer = try await task.value
                #expect(answer == "x")
            }
            await cache.drain()
        }
    }

    @Test func waitingForAPlaceHasAnEnd() async throws {
        try await Fixture.run({
            $0.requestsPerHost = 1
        }) { fixture in
            let gate = Latch()
            hang(fixture, gate)
            let first = Task { try await fixture.get("http://example.org/1").text }
            await fixture.transport.waitForRequests()
            let options = FetchOptions(timeouts: Timeouts(queue: .milliseconds(10)))
            let late = await error { _ = try await fixture.get("http://example.org/2", options) }
            #expect(late?.code == .timedOut)
            #expect(late?.transport?.mayHaveBeenSeen == false)
            #expect(late?.message.contains("Timeouts.queue") == true)
            #expect(fixture.cache.waitingRequests == 0)
            gate.open()
            let answer1 = try await first.value
            #expect(answer1 == "x")
            // The place is free again.
            let answer2 = try await fixture.get("http://example.org/2").text
            #expect(answer2 == "x")
        }
    }

    @Test func aQueueThatIsFullRefusesAtOnce() async throws {
        try await Fixture.run({
            $0.requestsPerHost = 1; $0.waitingPerHost = 1
        }) { fixture in
            let gate = Latch()
            hang(fixture, gate)
            let first = Task { try await fixture.get("http://example.org/1").text }
            await fixture.transport.waitForRequests()
            let second = Task { try await fixture.get("http://example.org/2").text }
            try await waitWhile { fixture.cache.waitingRequests < 1 }
            let refused = await error { _ = try await fixture.get("http://example.org/3") }
            #expect(refused?.code == .overloaded)
            #expect(refused?.transport?.code == .overloaded)
            gate.open()
            let answer3 = try await first.value
            #expect(answer3 == "x")
            let answer4 = try await second.value
            #expect(answer4 == "x")
            let answer5 = try await fixture.get("http://example.org/3").text
            #expect(answer5 == "x")
        }
    }

    /// Content in memory does not count as an upload: a slow client cannot hold it up.
    @Test func slowUploadsLeaveRoomForOthers() async throws {
        try await Fixture.run({
            $0.requestsPerHost = 4; $0.waitingPerHost = 8
        }) { fixture in
            let gate = Latch()
            fixture.transport.handler = { request throws(TransportError) in
                if request.body?.length == nil, request.body != nil { await gate.wait() }
                return .answer(200, [:], request.head.method.rawValue)
            }
            let put = try HTTPCache.request(for: Fixture.url, method: .put)
            let uploads = (0..<3).map { _ in
                Task { try await fixture.cache.fetch(put, body: RequestBody(length: nil) { nil }).head.status.code }
            }
            try await waitWhile { fixture.cache.waitingRequests < 1 }
            #expect(fixture.transport.takeSent().count == 2)
            let answer6 = try await fixture.get("http://example.org/b").text
            #expect(answer6 == "GET")
            let body = try await fixture.cache.fetch(put, body: RequestBody([1])).body
            let answer7 = try await body.bytes()
            #expect(answer7 == Array("PUT".utf8))
            gate.open()
            for upload in uploads {
                let answer = try await upload.value
                #expect(answer == 200)
            }
        }
    }

    /// A hundred servers that take all they get and never answer.
    @Test func hostsThatHangLeaveRoomForOthers() async throws {
        let limiter = HostLimiter(perHost: 1_024, waitingPerHost: 0, total: 4_096)
        var held: [HostLimiter.Permit] = []
        for host in 0..<100 {
            do {
                while true { held.append(try await limiter.acquire("\(host)", .normal, within: .zero)) }
            } catch HostLimiter.Refusal.overloaded(let running, _) {
                #expect(running > 0)
            }
        }
        #expect(held.count < 4_096 - 20)
        let place = try await limiter.acquire("another", .normal, within: .zero)
        withExtendedLifetime(place) {}
        // A host alone gets its full share.
        held = []
        while let permit = try? await limiter.acquire("one", .normal, within: .zero) { held.append(permit) }
        #expect(held.count == 1_024)
    }

    @Test func aFewPlacesAreNotSharedOut() async throws {
        let limiter = HostLimiter(perHost: 8, waitingPerHost: 0, total: 8)
        var held: [HostLimiter.Permit] = []
        while let permit = try? await limiter.acquire("one", .normal, within: .zero) { held.append(permit) }
        #expect(held.count == 8)
    }

    // MARK: Time

    @Test(arguments: [false, true]) func aFetchHasATimeForTheWhole(headComes: Bool) async throws {
        try await Fixture.run { fixture in
            let dripping = Pieces([[1]])
            fixture.transport.handler = { _ throws(TransportError) in
                if headComes {
                    return TransportResponse(
                        head: HTTPResponse(status: .ok, headerFields: [.cacheControl: "max-age=60"]),
                        body: TransportBody { () throws(TransportError) in
                            if let piece = try dripping.next() { return piece }
                            throw await Self.cancelled()
                        })
                }
                throw await Self.cancelled()
            }
            let options = FetchOptions(timeouts: Timeouts(total: .milliseconds(30)))
            let late = await error { _ = try await fixture.get(Fixture.url, options) }
            #expect(late?.code == .timedOut)
            #expect(late?.message.contains("Timeouts.total") == true)
            await fixture.cache.drain()
            // Its place is free, and nothing half is stored.
            fixture.answer("whole")
            let answer8 = try await fixture.get().text
            #expect(answer8 == "whole")
        }
    }

    /// Waits until the task is cancelled.
    private static func cancelled() async -> TransportError {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
        for await _ in stream {}
        continuation.finish()
        return TransportError(.cancelled, mayHaveBeenSeen: true, "cancelled")
    }

    /// A caller that joins a load has its own time limit, and the load continues for the others.
    @Test func theTimeIsEachCallersOwn() async throws {
        try await Fixture.run { fixture in
            let gate = Latch()
            fixture.transport.handler = { _ throws(TransportError) in
                await gate.wait()
                return .answer(200, [.cacheControl: "max-age=60"], "x")
            }
            let patient = Task { try await fixture.get().text }
            await fixture.transport.waitForRequests()
            let options = FetchOptions(timeouts: Timeouts(total: .milliseconds(10)))
            let late = await errorKind { _ = try await fixture.get(Fixture.url, options) }
            #expect(late == .timedOut)
            gate.open()
            let answer9 = try await patient.value
            #expect(answer9 == "x")
            #expect(fixture.transport.sent.count == 1)
        }
    }

    // MARK: Fields

    @Test func credentialsForAProxyStayHere() async throws {
        try await Fixture.run { fixture in
            fixture.transport.handler = { _ throws(TransportError) in
                .answer(
                    407, [.proxyAuthenticate: "Basic realm=x", .init("Proxy-Authentication-Info")!: "y"], "who?")
            }
            let response = try await fixture.get(fields: [
                .proxyAuthorization: "Basic c2VzYW1l", .init("Proxy-Connection")!: "keep-alive", .accept: "*/*",
            ]).response
            let sent = try #require(fixture.transport.sent.first).head.headerFields
            #expect(sent.map(\.name.canonicalName) == ["accept"])
            #expect(response.head.status.code == 407)
            #expect(!response.head.headerFields.contains { $0.name.canonicalName.hasPrefix("proxy-") })
        }
    }

    @Test func interimResponsesLoseTheFieldsOfTheConnection() async throws {
        try await Fixture.run { fixture in
            let interim: HTTPFields = [
                .connection: "close, X-Hop", .init("X-Hop")!: "1", .transferEncoding: "chunked", .contentLength: "5",
                .init("Link")!: "</a.css>; rel=preload",
            ]
            fixture.transport.handler = { request throws(TransportError) in
                await request.onInformational?(
                    HTTPResponse(status: .init(code: 103), headerFields: interim))
                return .answer(200, [:], "x")
            }
            let told = Mutex<[HTTPResponse]>([])
            let request = try HTTPCache.request(for: Fixture.url)
            _ = try await fixture.cache.fetch(request, onInformational: { head in told.withLock { $0.append(head) } })
            #expect(told.withLock { $0 }.map(\.status.code) == [103])
            #expect(
                told.withLock { $0 }.first?.headerFields == [.init("Link")!: "</a.css>; rel=preload"])
        }
    }

    // MARK: URLs

    @Test(arguments: ["http://example.org", "HTTP://EXAMPLE.org:80/", "http://example.org/#part"])
    func cancellingComparesURLsAsKeysDo(url: String) async throws {
        try await Fixture.run { fixture in
            fixture.transport.handler = { _ throws(TransportError) in throw await Self.cancelled() }
            let task = Task { try await fixture.cache.fetch("http://example.org/") }
            await fixture.transport.waitForRequests()
            #expect(fixture.cache.cancel(url: "http://example.org/other") == 0)
            #expect(fixture.cache.cancel(url: url) == 1)
            #expect(await errorKind { _ = try await task.value } == .cancelled)
        }
    }
}
