import HTTPTestSupport
import HTTPTypes
import Locks
import TestSupport
import Testing

@testable import LarderHTTP

/// Origins that fail, and loads that have lost their readers.
struct OriginFailureTests {
    private func withStale(
        _ change: (inout HTTPCacheConfiguration) -> Void = { _ in }, _ body: (Fixture) async throws -> Void
    ) async throws {
        try await Fixture.run(change) { fixture in
            fixture.answer("old", [.cacheControl: "max-age=1", .eTag: "\"a\""])
            _ = try await fixture.get()
            fixture.clock.advance(by: .seconds(10))
            _ = fixture.transport.takeSent()
            fixture.transport.handler = ScriptedTransport.unreachable
            try await body(fixture)
        }
    }

    /// Asks once; returns whether the origin was asked.
    private func asks(_ fixture: Fixture) async throws -> Bool {
        let (response, text) = try await fixture.get()
        #expect(response.source == .fallback && text == "old")
        let count = fixture.transport.takeSent().count
        #expect((response.originError != nil) == (count == 1))
        return count == 1
    }

    @Test func aFailedOriginIsNotAskedForAWhile() async throws {
        try await withStale { fixture in
            try await #expect(asks(fixture))
            for _ in 0..<5 { try await #expect(!asks(fixture)) }
            // 1 s, then twice as long each time, 30 s at most.
            for seconds in [1, 2, 4, 8, 16, 30, 30] {
                fixture.clock.advance(by: .seconds(seconds) - .milliseconds(1))
                try await #expect(!asks(fixture))
                fixture.clock.advance(by: .milliseconds(1))
                try await #expect(asks(fixture))
            }
            fixture.clock.advance(by: .seconds(30))
            fixture.answer("new")
            try await #expect(fixture.get().text == "new")
            // An answer ends it.
            fixture.transport.handler = ScriptedTransport.unreachable
            fixture.clock.advance(by: .seconds(100))
            _ = fixture.transport.takeSent()
            _ = try await fixture.get()
            fixture.clock.advance(by: .seconds(1))
            _ = try await fixture.get()
            #expect(fixture.transport.sent.count == 2)
        }
    }

    @Test func onlyOneAsksWhetherTheOriginIsBack() async throws {
        try await withStale({ $0.collapsesRequests = false }) { fixture in
            try await #expect(asks(fixture))
            fixture.clock.advance(by: .seconds(2))
            let gate = Latch()
            fixture.transport.handler = { _ throws(TransportError) in
                await gate.wait()
                return .answer(200, [.cacheControl: "max-age=60"], "new")
            }
            let probe = Task { try await fixture.get().text }
            await fixture.transport.waitForRequests()
            for _ in 0..<5 { try await #expect(fixture.get().text == "old") }
            #expect(fixture.transport.sent.count == 1)
            gate.open()
            try await #expect(probe.value == "new")
            try await #expect(fixture.get().text == "new")
        }
    }

    @Test func requestsWithoutAStaleResponseAreTriedUntilManyHaveFailed() async throws {
        try await Fixture.run { fixture in
            fixture.transport.handler = ScriptedTransport.unreachable
            for number in 0..<3 {
                #expect(await errorKind { _ = try await fixture.get("http://example.org/\(number)") } == .origin)
            }
            #expect(fixture.transport.takeSent().count == 3)
            let gate = Latch()
            fixture.transport.handler = { _ throws(TransportError) in
                await gate.wait()
                throw TransportError(.timedOut, mayHaveBeenSeen: false, "no answer")
            }
            let probe = Task { await errorKind { _ = try await fixture.get("http://example.org/probe") } }
            await fixture.transport.waitForRequests()
            // They do not wait for the same.
            for number in 0..<3 {
                #expect(await errorKind { _ = try await fixture.get("http://example.org/\(number)") } == .origin)
            }
            #expect(fixture.transport.sent.count == 1)
            // Another origin is another matter.
            let other = Task { await errorKind { _ = try await fixture.get("http://example.com/") } }
            await fixture.transport.waitForRequests(2)
            gate.open()
            #expect(await probe.value == .timedOut)
            #expect(await other.value == .timedOut)
            fixture.answer("back")
            try await #expect(fixture.get().text == "back")
        }
    }

    private static let noAnswer = TransportError(.timedOut, mayHaveBeenSeen: true, "no answer")

    /// Answers nothing below `/hang` until the gate opens, and `answer` to the rest.
    private func hang(_ fixture: Fixture, until gate: Latch, _ answer: @escaping @Sendable () -> TransportResponse) {
        fixture.transport.handler = { request throws(TransportError) in
            guard request.head.path?.hasPrefix("/hang") == true else { return answer() }
            await gate.wait()
            throw Self.noAnswer
        }
    }

    @Test func whoAsksForWhatIsNeverAnsweredKeepsNobodyFromTheOrigin() async throws {
        try await Fixture.run { fixture in
            let answer = { @Sendable in TransportResponse.answer(200, [:], "answer") }
            let open = Latch()
            open.open()
            hang(fixture, until: open, answer)
            for number in 0..<5 {
                #expect(await errorKind { _ = try await fixture.get("http://example.org/hang/\(number)") } == .timedOut)
            }
            // One more asks at this moment.
            let gate = Latch()
            hang(fixture, until: gate, answer)
            _ = fixture.transport.takeSent()
            let hanging = Task { await errorKind { _ = try await fixture.get("http://example.org/hang") } }
            await fixture.transport.waitForRequests()
            for number in 0..<3 {
                try await #expect(fixture.get("http://example.org/\(number)").text == "answer")
            }
            gate.open()
            #expect(await hanging.value == .timedOut)
        }
    }

    @Test func aRequestThatFailsWhileOthersAreAnsweredIsNoFailureOfTheOrigin() async throws {
        try await withStale { fixture in
            let gate = Latch()
            hang(fixture, until: gate) { .answer(304, [.cacheControl: "max-age=1", .eTag: "\"a\""]) }
            let hanging = Task { await errorKind { _ = try await fixture.get("http://example.org/hang") } }
            await fixture.transport.waitForRequests()
            try await #expect(fixture.get().response.source == .revalidated)
            gate.open()
            #expect(await hanging.value == .timedOut)
            fixture.clock.advance(by: .seconds(10))
            try await #expect(fixture.get().response.source == .revalidated)
        }
    }

    @Test func aProbeThatIsCancelledLetsAnotherAsk() async throws {
        try await withStale { fixture in
            try await #expect(asks(fixture))
            fixture.clock.advance(by: .seconds(2))
            let gate = Latch()
            fixture.transport.handler = { _ throws(TransportError) in
                await gate.wait()
                throw TransportError(.cancelled, mayHaveBeenSeen: true, "cancelled")
            }
            let probe = Task { try await fixture.get().text }
            await fixture.transport.waitForRequests()
            probe.cancel()
            gate.open()
            _ = try? await probe.value
            await fixture.cache.drain()
            fixture.answer("new")
            try await #expect(fixture.get().text == "new")
        }
    }

    @Test func theMemoryCanBeTurnedOff() async throws {
        try await withStale({ $0.originFailureMemory = nil }) { fixture in
            for _ in 0..<3 { try await #expect(asks(fixture)) }
        }
    }

    // MARK: Loads that have lost their readers

    private static let piece = 65_536

    /// Reads `count` pieces of a body of 64 and leaves.
    private func leave(after count: Int, _ fixture: Fixture, fields: HTTPFields) async throws {
        let gate = Latch()
        let length = 64 * Self.piece
        fixture.transport.handler = { _ throws(TransportError) in
            let pieces = Pieces((0..<64).map { [UInt8](repeating: UInt8($0), count: Self.piece) })
            let taken = Mutex(0)
            return TransportResponse(
                head: HTTPResponse(status: .ok, headerFields: fields),
                body: TransportBody(length: Int64(length)) { () throws(TransportError) in
                    let isHeld = taken.withLock { taken in
                        taken += 1
                        return taken > count
                    }
                    if isHeld { await gate.wait() }
                    return try pieces.next()
                })
        }
        do {
            let response = try await fixture.cache.fetch(Fixture.url)
            var iterator = response.body.makeAsyncIterator()
            var read = 0
            while read < count * Self.piece, let piece = try await iterator.next() { read += piece.count }
        }
        gate.open()
        await fixture.cache.drain()
        _ = fixture.transport.takeSent()
        fixture.transport.handler = ScriptedTransport.unreachable
    }

    @Test func aLoadThatIsNearlyDoneIsFinished() async throws {
        // A quarter of 4 MiB is 1 MiB: both limits.
        try await Fixture.run { fixture in
            try await leave(after: 48, fixture, fields: [.cacheControl: "max-age=60"])
            let response = try await fixture.cache.fetch(Fixture.url)
            #expect(response.source == .hit && response.body.length == Int64(64 * Self.piece))
        }
    }

    @Test(arguments: [0, 64]) func aLoadThatHasJustBegunIsGivenUp(_ limit: Int) async throws {
        try await Fixture.run({ $0.abandonedLoads.limit = limit }) { fixture in
            let pieces = limit == 0 ? 60 : 10
            try await leave(after: pieces, fixture, fields: [.cacheControl: "max-age=60", .eTag: "\"a\""])
            // What came stays as a part.
            _ = await errorKind { _ = try await fixture.get() }
            let range = try #require(fixture.transport.sent.first?.head.headerFields[.range])
            let first = try #require(Int(range.dropFirst("bytes=".count).dropLast()))
            #expect(first >= pieces * Self.piece && first < 64 * Self.piece)
        }
    }
}
