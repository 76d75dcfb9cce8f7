import HTTPTypes
import Synchronization
import Testing

@testable import LarderHTTP

/// One load by itself.
@Suite(.timeLimit(.minutes(1))) struct LoadTests {
    /// The last reader of a body gives the load up when it goes; a load that lets go of that body must not wait for itself.
    @Test func lettingGoOfTheOnlyReaderGivesTheLoadUp() async {
        let load = Load(url: "http://example.org/")
        let givenUp = Mutex(0)
        let spool = Spool(length: nil, writer: nil, isDetached: false) { [unowned load] in
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
        let spool = Spool(length: nil, writer: nil, isDetached: false) { [unowned load] in
            load.cancel()
            givenUp.withLock { $0 += 1 }
        }
        load.letGoOfResponse()
        load.arrive(.success(Self.arrival(spool)))
        #expect(givenUp.withLock { $0 } == 1)
    }

    /// A response that others may share holds the load's spool, and the spool a way to give the load up.
    @Test(arguments: ["max-age=60", "no-store"]) func aLoadThatIsOverIsGone(_ control: String) async throws {
        try await Fixture.run { fixture in
            let gate = Gate()
            fixture.transport.handler = { _ throws(TransportError) in
                await gate.pass()
                return .answer(200, [.cacheControl: control], "hello")
            }
            let task = Task { try await fixture.get() }
            while fixture.transport.sent.isEmpty { await Task.yield() }
            let seen = Seen()
            _ = fixture.cache.active.cancel { load in
                seen.load = load
                return false
            }
            #expect(seen.load != nil)
            gate.open()
            try await #expect(task.value.text == "hello")
            await fixture.cache.drain()
            // The task that ran it lets go of it a moment after it says that it is done.
            for _ in 0..<100_000 where seen.load != nil { await Task.yield() }
            #expect(seen.load == nil)
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
                head: HTTPResponse(status: .ok), body: body, source: .network, storedStatus: nil, originStatus: 200,
                ageSeconds: nil, freshSeconds: nil, cacheStatus: nil, isStored: false),
            shared: nil)
    }
}
