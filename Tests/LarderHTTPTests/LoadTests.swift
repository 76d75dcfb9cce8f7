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
