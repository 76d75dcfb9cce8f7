import HTTPTestSupport
import HTTPTypes
import HTTPWire
import Larder
import Locks
import TestSupport
import Testing

@testable import LarderHTTP

/// What may happen between the turns of the event loop in which a response is stored without a task.
struct RelayedTurnTests {
    private static let key = Key(Fixture.url)

    /// The only exchange there is. The test says when it is answered, and when the next turn begins.
    private final class HeldExchange: RelayedExchange {
        private struct State {
            var receive: (@Sendable (RelayEvent) -> Void)?
            var later: [@Sendable () -> Void] = []
        }

        private let state = Mutex(State())
        var isWaiting: Bool { state.withLock { !$0.later.isEmpty } }

        func begin(_ receive: @escaping @Sendable (RelayEvent) -> Void) { state.withLock { $0.receive = receive } }
        /// The last: nothing is called after it.
        func answer(_ event: RelayEvent) {
            let receive = state.withLock { state in
                defer { state.receive = nil }
                return state.receive
            }
            receive?(event)
        }

        func cancel() {}
        func execute(_ body: @escaping @Sendable () -> Void) { body() }
        func executeLater(_ body: @escaping @Sendable () -> Void) { state.withLock { $0.later.append(body) } }

        func turn() {
            let due = state.withLock { state in
                defer { state.later = [] }
                return state.later
            }
            for body in due { body() }
        }
    }

    private struct HeldTransport: RelayingTransport {
        let exchange = HeldExchange()

        func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
            throw TransportError(.cancelled, mayHaveBeenSeen: false, "this test sends no request")
        }

        func route(scheme: String, authority: String) -> RelayRoute? {
            RelayRoute(server: authority, port: 80, isTLS: false, host: authority, endpoint: "http://\(authority)")
        }

        func relay(
            _ head: [UInt8], to route: RelayRoute, _ timeouts: Timeouts,
            _ receive: @escaping @Sendable (RelayEvent) -> Void
        ) -> (any RelayedExchange)? {
            exchange.begin(receive)
            return exchange
        }
    }

    private static func ask(_ cache: HTTPCache) throws -> any RelayedWork {
        let request = try HTTPCache.request(for: Fixture.url)
        return try #require(cache.relayedWork(key, request) { _ in [] })
    }

    /// Asks for a URL without a task, and lets the origin answer with a body that may be stored.
    private static func withAnswer(
        _ body: (HTTPCache, HeldExchange, any RelayedWork, _ events: Events) async throws -> Void
    ) async throws {
        try await withStore { store in
            let transport = HeldTransport()
            let cache = HTTPCache(store: store, transport: transport)
            // Where packages may be, a load stores.
            _ = try await cache.stored(HTTPCache.request(for: Fixture.url))
            try await answer(cache, transport.exchange, body)
            // What holds a request that is over keeps it active.
            await cache.drain()
        }
    }

    private static func answer(
        _ cache: HTTPCache, _ exchange: HeldExchange,
        _ body: (HTTPCache, HeldExchange, any RelayedWork, _ events: Events) async throws -> Void
    ) async throws {
        let (work, events) = (try ask(cache), Events())
        work.start({ $0() }, { event in events.note(event) })
        let response = HTTPResponse(status: .ok, headerFields: [.cacheControl: "max-age=60"])
        exchange.answer(.response(.objects(response), TransportBody(whole: Array("body".utf8))))
        try await body(cache, exchange, work, events)
    }

    private final class Events: Sendable {
        private let names = Mutex<[String]>([])
        var all: [String] { names.withLock { $0 } }

        func note(_ event: RelayedEvent) {
            let name =
                switch event {
                case .informational: "informational"
                case .response(let response): response.isStored ? "stored" : "response"
                case .failure: "failure"
                case .load: "load"
                }
            names.withLock { $0.append(name) }
        }
    }

    @Test func aResponseIsStoredAndSentInTurnsOfItsOwn() async throws {
        try await Self.withAnswer { cache, exchange, _, events in
            try #expect(!cache.store.contains(Self.key) && events.all.isEmpty)
            exchange.turn()
            try #expect(cache.store.contains(Self.key) && events.all.isEmpty)
            exchange.turn()
            #expect(events.all == ["stored"] && !exchange.isWaiting)
        }
    }

    @Test(arguments: 0...1) func whatHasComeIsStoredThoughItsClientLeaves(_ turns: Int) async throws {
        try await Self.withAnswer { cache, exchange, work, events in
            let (joined, others) = (try Self.ask(cache), Events())
            joined.start({ $0() }, { event in others.note(event) })
            for _ in 0..<turns { exchange.turn() }
            work.cancel()
            while exchange.isWaiting { exchange.turn() }
            try #expect(cache.store.contains(Self.key))
            #expect(events.all.isEmpty && others.all.count == 1 && others.all != ["failure"])
        }
    }

    @Test func whatIsPurgedBeforeItsTurnIsNotStored() async throws {
        try await Self.withAnswer { cache, exchange, _, events in
            try await cache.purge(Fixture.url)
            while exchange.isWaiting { exchange.turn() }
            try #expect(!cache.store.contains(Self.key))
            // A load continues it, and stores nothing either.
            #expect(events.all == ["load"])
        }
    }
}
