import HTTPTestSupport
import Dispatch
import HTTPTypes
import Locks
import TestSupport
import Testing

@testable import Larder
@testable import LarderHTTP

/// One load by itself.
struct LoadTests {
    /// The last reader of a body gives the load up when it goes; a load that lets go of that body must not wait for
    /// itself.
    @Test func lettingGoOfTheOnlyReaderGivesTheLoadUp() async {
        let load = Load(url: "http://example.org/")
        let givenUp = Mutex(0)
        let spool = Spool(length: nil, sink: nil, isDetached: false, held: HeldBytes()) { [unowned load] in
            load.cancel()
            givenUp.withLock { $0 += 1 }
        }
        load.arrive(.success(Self.arrival(spool)))
        #expect(givenUp.withLock { $0 } == 0)
        load.letGoOfResponse()
        #expect(givenUp.withLock { $0 } == 1)
    }

    @Test func anAnswerThatComesAfterItWasLetGoIsGivenUp() async {
        let load = Load(url: "http://example.org/")
        let givenUp = Mutex(0)
        let spool = Spool(length: nil, sink: nil, isDetached: false, held: HeldBytes()) { [unowned load] in
            load.cancel()
            givenUp.withLock { $0 += 1 }
        }
        load.letGoOfResponse()
        load.arrive(.success(Self.arrival(spool)))
        #expect(givenUp.withLock { $0 } == 1)
    }

    /// What waits for a reader that is slow, or for the store, is counted for as long as it is in memory.
    @Test(arguments: ["no-store", "max-age=60"]) func whatALoadHoldsIsCounted(_ control: String) async throws {
        try await Fixture.run { fixture in
            // All of them are short enough for the index, so that they are in memory until they are stored.
            let piece = [UInt8](repeating: 7, count: 300)
            let gate = Latch()
            fixture.transport.handler = { _ throws(TransportError) in
                let count = Mutex(0)
                let body = TransportBody(length: 12 * Int64(piece.count)) { () async throws(TransportError) in
                    let number = count.withLock { count in
                        count += 1
                        return count
                    }
                    if number == 12 { await gate.wait() }
                    return number <= 12 ? piece : nil
                }
                return TransportResponse(
                    head: HTTPResponse(status: .ok, headerFields: [.cacheControl: control]), body: body)
            }
            var response: FetchResponse? = try await fixture.cache.fetch(Fixture.url)
            try await waitWhile { fixture.cache.heldBytes < Spool.fixedBytes + 5 * piece.count }
            #expect(fixture.cache.heldBytes <= Spool.fixedBytes + 11 * piece.count)
            gate.open()
            try await #expect(response?.body.bytes().count == 12 * piece.count)
            response = nil
            await fixture.cache.drain()
            try await waitWhile { fixture.cache.heldBytes > 0 }
        }
    }

    /// A response that others may share holds the load's spool, and the spool a way to give the load up.
    @Test(arguments: ["max-age=60", "no-store"]) func aLoadThatIsOverIsGone(_ control: String) async throws {
        try await Fixture.run { fixture in
            let gate = Latch()
            fixture.transport.handler = { _ throws(TransportError) in
                await gate.wait()
                return .answer(200, [.cacheControl: control], "hello")
            }
            let task = Task { try await fixture.get() }
            await fixture.transport.waitForRequests()
            let seen = Seen()
            _ = fixture.cache.loader.active.cancel { load in
                seen.load = load
                return false
            }
            #expect(seen.load != nil)
            gate.open()
            try await #expect(task.value.text == "hello")
            await fixture.cache.drain()
            // The task that ran it lets go of it a moment after it says that it is done.
            try await waitWhile { seen.load != nil }
        }
    }

    /// Waits until the load of another caller has been given up.
    private func giveUp(_ fixture: Fixture, _ leader: Task<String, any Error>) async throws {
        let seen = Seen()
        _ = fixture.cache.loader.active.cancel { load in
            seen.load = load
            return false
        }
        leader.cancel()
        try await waitWhile { seen.load?.isGivenUp == false }
    }

    @Test func aLoadThatWasGivenUpAnswersNobody() async throws {
        try await Fixture.run { fixture in
            let gate = Latch()
            fixture.transport.handler = { [transport = fixture.transport] _ throws(TransportError) in
                // The first does not notice that it is cancelled until it is too late.
                guard transport.sent.count == 1 else { return .answer(200, [.cacheControl: "max-age=60"], "hello") }
                await gate.wait()
                throw TransportError(.cancelled, mayHaveBeenSeen: true, "cancelled")
            }
            let leader = Task { try await fixture.get().text }
            await fixture.transport.waitForRequests()
            try await giveUp(fixture, leader)
            try await #expect(fixture.get().text == "hello")
            gate.open()
            await fixture.cache.drain()
        }
    }

    /// The first caller has not begun to wait when a follower leaves.
    @Test func aFollowerThatLeavesFirstDoesNotEndTheLoad() async {
        let load = Load(url: Fixture.url)
        let follower = Task { await load.arrival() }
        follower.cancel()
        guard case .failure = await follower.value else {
            Issue.record("an answer out of nothing")
            return
        }
        #expect(!load.isGivenUp)
        let leader = Task { await load.arrival(isLeader: true) }
        leader.cancel()
        _ = await leader.value
        #expect(load.isGivenUp)
    }

    @Test func whoAsksAfterAnInvalidationDoesNotShareWhatWasAskedForBefore() async throws {
        try await Fixture.run { fixture in
            let gate = Latch()
            fixture.transport.handler = { [transport = fixture.transport] request throws(TransportError) in
                if request.head.method == .post { return .answer(200, [:], "done") }
                if transport.sent.count > 1 { return .answer(200, [.cacheControl: "max-age=60"], "new") }
                await gate.wait()
                return .answer(200, [.cacheControl: "max-age=60"], "old")
            }
            let early = Task { try await fixture.get().text }
            await fixture.transport.waitForRequests()
            let post = try HTTPCache.request(for: Fixture.url, method: .post)
            _ = try await fixture.cache.fetch(post).body.bytes()
            try await #expect(fixture.get().text == "new")
            gate.open()
            try await #expect(early.value == "old")
            await fixture.cache.drain()
            let (response, text) = try await fixture.get()
            #expect(response.source == .hit && text == "new")
        }
    }

    @Test func whatIsPurgedWhileItIsCommittedIsNotThereAfterwards() async throws {
        // One after the other: each needs all threads.
        for purgeWaits in [true, false] { try await purgeWhileItIsCommitted(purgeWaits) }
    }

    /// Both threads on which the commit of a body in a file runs are held until the purge is over, or waits for the
    /// commit.
    private func purgeWhileItIsCommitted(_ purgeWaits: Bool) async throws {
        try await Fixture.run { fixture in
            let isRead = Latch()
            let isHeld = Latch()
            let text = String(repeating: "hello", count: 60_000)
            fixture.transport.handler = { _ throws(TransportError) in
                let pieces = Pieces([Array(text.utf8)])
                return TransportResponse(
                    head: HTTPResponse(status: .ok, headerFields: [.cacheControl: "max-age=60"]),
                    body: TransportBody(length: nil) { () throws(TransportError) in
                        let piece = try pieces.next()
                        if piece == nil {
                            isRead.open()
                            await isHeld.wait()
                        }
                        return piece
                    })
            }
            let (cache, generations) = (fixture.cache, fixture.cache.changes.generations)
            let first = Task { try await fixture.get().text }
            await isRead.wait()
            let purged = DispatchSemaphore(value: 0)
            let started = Counter()
            let holds = (0..<2).map { _ in
                Task { [purged, started] in
                    try await IOPool.shared.run {
                        started.increment()
                        purged.wait()
                    }
                }
            }
            try await waitWhile { started.value < 2 }
            isHeld.open()
            try await waitWhile { generations.commitCount == 0 }
            let before = generations.current(Fixture.url)
            func purgeNow() throws -> Int { try cache.purge(Fixture.url) }
            let purge = purgeWaits ? Task { try await cache.purge(Fixture.url) } : nil
            if purgeWaits {
                try await waitWhile { generations.current(Fixture.url) == before }
            } else {
                #expect(try purgeNow() == 0)
            }
            for _ in holds { purged.signal() }
            for hold in holds { try await hold.value }
            if let purge {
                // The commit removed it itself, or left it to the purge.
                _ = try await purge.value
            } else {
                await fixture.cache.drain()
            }
            try await #expect(first.value == text)
            try await #expect(fixture.get().response.source == .network)
        }
    }

    /// The answer to a validation is of no use, so that the whole is asked for, at the only place there is.
    @Test func aSecondRequestDoesNotWaitForThePlaceOfTheFirst() async throws {
        try await Fixture.run({ $0.requestsPerHost = 1 }) { fixture in
            fixture.transport.handler = { [transport = fixture.transport] request throws(TransportError) in
                if request.head.headerFields[.ifNoneMatch] != nil { return .answer(304, [.eTag: "\"b\""]) }
                let tag = transport.sent.count == 1 ? "\"a\"" : "\"b\""
                return .answer(200, [.cacheControl: "max-age=1", .eTag: tag], tag)
            }
            try await #expect(fixture.get().text == "\"a\"")
            fixture.clock.advance(by: .seconds(10))
            try await #expect(fixture.get().text == "\"b\"")
            #expect(fixture.transport.sent.count == 3)
        }
    }

    @Test func aLoadThatWaitsForItsReaderCanBeCancelled() async throws {
        try await Fixture.run { fixture in
            let pieces = Pieces((0..<64).map { [UInt8](repeating: UInt8($0), count: 32_768) })
            fixture.transport.handler = { _ throws(TransportError) in
                TransportResponse(
                    head: HTTPResponse(status: .ok, headerFields: [.cacheControl: "no-store"]),
                    body: TransportBody(length: nil) { () throws(TransportError) in try pieces.next() })
            }
            let response = try await fixture.cache.fetch(Fixture.url)
            try await waitWhile { fixture.cache.heldBytes < Spool.fixedBytes + Int(Spool.window) }
            #expect(fixture.cache.cancelAll() == 1)
            await fixture.cache.drain()
            await #expect(throws: FetchError.self) { _ = try await response.body.bytes() }
        }
    }

    private final class Seen {
        weak var load: Load?
    }

    private static func arrival(_ spool: Spool) -> Load.Arrival {
        let reader = spool.makeReader()
        let body = ResponseBody(length: nil, live: { try await reader?.next() })
        return Load.Arrival(
            response: FetchResponse(
                .objects(HTTPResponse(status: .ok)), body: body, source: .network, storedStatus: nil, originStatus: 200,
                ageSeconds: nil, freshSeconds: nil, cacheStatus: nil, isStored: false),
            shared: nil)
    }
}
