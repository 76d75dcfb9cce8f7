import HTTPTestSupport
import HTTPCaching
import HTTPTypes
import Larder
import Locks
import TestSupport
import Testing

@testable import LarderHTTP

/// What one caller's time limit, and what is known of an origin, mean for others.
struct SharedTimeTests {
    /// The time limit of the first request ends no other fetch, and says nothing about the origin.
    @Test func aTotalTimeLimitIsTheCallersOwn() async throws {
        try await Fixture.run { fixture in
            let (asked, gate) = (Latch(), Latch())
            fixture.transport.handler = { _ throws(TransportError) in
                asked.open()
                await gate.wait()
                return .answer(200, [.cacheControl: "max-age=60"], "late")
            }
            var timeouts = Timeouts()
            timeouts.total = .seconds(2)
            let hurried = FetchOptions(timeouts: timeouts)
            let isOver = Latch()
            let first = Task {
                defer { for latch in [asked, isOver] { latch.open() } }
                return await errorKind { _ = try await fixture.get(Fixture.url, hurried) }
            }
            await asked.wait()
            let second = Task { try await fixture.get().text }
            let joinable = fixture.cache.loader.joinable
            let generation = fixture.cache.changes.generations.current(Fixture.url)
            var isJoined = false
            // On a machine that is very busy the time may be over before.
            try await waitWhile {
                isJoined = joinable.leading(Fixture.url, generation: generation)?.waiterCount == 2
                return !isJoined && !isOver.isOpen
            }
            #expect(await first.value == .timedOut)
            gate.open()
            try await #expect(second.value == "late")
            if isJoined { #expect(fixture.transport.sent.count == 1) }
        }
    }

    /// Where the origin is not asked because it just failed, nothing went forward (RFC 9211 section 2).
    @Test func cacheStatusOfAnOriginThatWasNotAsked() async throws {
        try await Fixture.run { fixture in
            fixture.answer("a", [.cacheControl: "max-age=1", .eTag: "\"1\""])
            _ = try await fixture.get()
            fixture.clock.advance(by: .seconds(2))
            fixture.transport.handler = ScriptedTransport.unreachable
            let asked = try await fixture.get().response
            #expect(asked.source == .fallback && asked.cacheStatus?.fieldValue.contains("fwd=stale") == true)
            _ = fixture.transport.takeSent()
            let notAsked = try await fixture.get().response
            #expect(fixture.transport.sent.isEmpty && notAsked.source == .fallback)
            #expect(notAsked.cacheStatus?.fieldValue.contains("fwd") == false)
            #expect(notAsked.cacheStatus?.fieldValue.contains("hit") == true)
        }
    }

    /// A response that takes long does not take the place of one that was asked for after it.
    @Test func anOlderResponseDoesNotReplaceANewerOne() async throws {
        try await Fixture.run { fixture in
            let gate = Latch()
            fixture.transport.handler = { request throws(TransportError) in
                if request.head.headerFields.contains(.cacheControl) {
                    return .answer(200, [.cacheControl: "max-age=60"], "new")
                }
                let rest = Pieces([Array("old".utf8)])
                return TransportResponse(
                    head: HTTPResponse(status: .ok, headerFields: [.cacheControl: "max-age=60"]),
                    body: TransportBody(length: 3) { () throws(TransportError) in
                        await gate.wait()
                        return try rest.next()
                    })
            }
            let first = try await fixture.cache.fetch(Fixture.url)
            fixture.clock.advance(by: .seconds(1))
            try await #expect(fixture.get(fields: [.cacheControl: "no-cache"]).text == "new")
            gate.open()
            try await #expect(first.body.bytes() == Array("old".utf8))
            await fixture.cache.drain()
            try await #expect(fixture.get().text == "new")
        }
    }

    /// The list of variations may be displaced; what it led to does not come back when it is made again.
    @Test func sharedResponsesThatLostTheirListStayInvalidated() async throws {
        try await Fixture.run { fixture in
            fixture.answer("old", [.cacheControl: "max-age=60", .noVarySearch: "params=(\"utm\")"])
            _ = try await fixture.get(Fixture.url + "?x=1&utm=1")
            try await #expect(fixture.store.remove(Key(Fixture.url + " search")))
            let post = try HTTPCache.request(for: Fixture.url + "?x=1", method: .post)
            _ = try await fixture.cache.fetch(post, body: RequestBody([1])).body.bytes()
            fixture.answer("new", [.cacheControl: "max-age=60", .noVarySearch: "params=(\"utm\")"])
            try await #expect(fixture.get(Fixture.url + "?x=2").text == "new")
            try await #expect(fixture.get(Fixture.url + "?x=1").text == "new")
        }
    }

    /// The origin was not asked in the client's words, so its answer is judged by them.
    @Test func aDateThatWasNotSentIsJudgedHere() async throws {
        try await Fixture.run({ $0.caching = CachingOptions() }) { fixture in
            let gate = Latch()
            let asked = Latch()
            fixture.transport.handler = { _ throws(TransportError) in
                asked.open()
                await gate.wait()
                return .answer(
                    200, [.cacheControl: "max-age=60", .lastModified: "Thu, 01 Jan 2015 00:00:00 GMT"], "page")
            }
            let fields: HTTPFields = [.ifModifiedSince: "Thu, 01 Jan 2015 00:00:00 GMT"]
            let first = Task { try await fixture.get(fields: fields).response.head.status.code }
            await asked.wait()
            let second = Task { try await fixture.get(fields: fields).response.head.status.code }
            await fixture.transport.waitForRequests(2)
            gate.open()
            _ = try await first.value
            try await #expect(second.value == 304)
        }
    }

    /// A validation in the background whose answer may not be stored ends with its head: the rest is of no use.
    @Test func aRefreshThatIsOfNoUseEnds() async throws {
        try await Fixture.run { fixture in
            fixture.answer("a", [.cacheControl: "max-age=1, stale-while-revalidate=60"])
            _ = try await fixture.get()
            fixture.clock.advance(by: .seconds(2))
            let pieces = Atomic(0)
            fixture.transport.handler = { _ throws(TransportError) in
                TransportResponse(
                    head: HTTPResponse(status: .ok, headerFields: [.cacheControl: "no-store"]),
                    body: TransportBody { () throws(TransportError) in
                        if pieces.add(1, ordering: .relaxed).newValue > 1_000 { return nil }
                        return [UInt8](repeating: 0, count: 16_384)
                    })
            }
            try await #expect(fixture.get().response.source == .stale)
            await fixture.cache.drain()
            #expect(pieces.load(ordering: .relaxed) < 100)
        }
    }

    /// A lifetime that was given says nothing about the age (RFC 9111 section 4).
    @Test func aLifetimeThatWasGivenKeepsTheAge() async throws {
        try await Fixture.run({ $0.secondsToCache = 100 }) { fixture in
            fixture.answer("a", [.cacheControl: "max-age=600", .age: "500"])
            _ = try await fixture.get()
            fixture.clock.advance(by: .seconds(99))
            let hit = try await fixture.get().response
            #expect(hit.source == .hit && hit.head.headerFields[.age] == "599" && hit.freshSeconds == 1)
            fixture.clock.advance(by: .seconds(2))
            try await #expect(fixture.get().response.source == .network)
        }
    }
}
