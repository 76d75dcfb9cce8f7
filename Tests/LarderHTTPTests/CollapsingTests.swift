import HTTPTestSupport
import HTTPCaching
import HTTPTypes
import Locks
import TestSupport
import Testing

@testable import LarderHTTP

/// Who shares a load with whom, and what each of them gets (RFC 9111 section 4).
struct CollapsingTests {
    private typealias Reply = (response: FetchResponse, text: String)

    /// Starts requests; returns when the last of them waits for the first's answer.
    private func start(
        _ requests: [HTTPFields], _ fixture: Fixture, method: HTTPRequest.Method = .get, key: String = Fixture.url,
        joined: Int? = nil
    ) async throws -> [Task<Reply, any Error>] {
        var tasks: [Task<Reply, any Error>] = []
        for fields in requests {
            tasks.append(
                Task {
                    var request = try HTTPCache.request(for: Fixture.url, method: method)
                    request.headerFields = fields
                    let response = try await fixture.cache.fetch(request)
                    return (response, String(decoding: try await response.body.bytes(), as: UTF8.self))
                })
            // The first leads.
            if tasks.count == 1 { await fixture.transport.waitForRequests() }
        }
        let joinable = fixture.cache.loader.joinable
        let generation = fixture.cache.changes.generations.current(Fixture.url)
        try await waitWhile {
            (joinable.leading(key, generation: generation)?.waiterCount ?? 0) < (joined ?? requests.count)
        }
        return tasks
    }

    /// A stored response that has gone stale.
    private func withStale(
        _ lifetime: String = "max-age=60", _ body: (Fixture) async throws -> Void
    ) async throws {
        try await Fixture.run({ $0.caching = .gateway }) { fixture in
            fixture.answer("old", [.cacheControl: lifetime, .eTag: "\"a\""])
            _ = try await fixture.get()
            await fixture.cache.drain()
            fixture.clock.advance(by: .seconds(100))
            _ = fixture.transport.takeSent()
            try await body(fixture)
        }
    }

    @Test func fiftyClientsShareOneValidation() async throws {
        try await withStale { fixture in
            let gate = Latch()
            fixture.transport.handler = { _ throws(TransportError) in
                await gate.wait()
                return .answer(304, [.eTag: "\"a\"", .cacheControl: "max-age=60"])
            }
            let kinds: [HTTPFields] = [[:], [.ifNoneMatch: "\"a\""], [.ifNoneMatch: "\"b\""]]
            let tasks = try await start((0..<50).map { kinds[$0 % 3] }, fixture)
            gate.open()
            for (number, task) in tasks.enumerated() {
                let (response, text) = try await task.value
                #expect(response.source == .revalidated && response.originStatus == 304)
                #expect(response.head.status.code == (number % 3 == 1 ? 304 : 200))
                #expect(text == (number % 3 == 1 ? "" : "old"))
                if number > 0 { #expect(response.cacheStatus?.isCollapsed == true) }
            }
            #expect(fixture.transport.sent.count == 1)
        }
    }

    @Test func aNewRepresentationAnswersEachByItsOwnConditions() async throws {
        try await withStale { fixture in
            let gate = Latch()
            fixture.transport.handler = { _ throws(TransportError) in
                await gate.wait()
                return .answer(200, [.eTag: "\"b\"", .cacheControl: "max-age=60"], "new")
            }
            let kinds: [HTTPFields] = [[.ifNoneMatch: "\"a\""], [.ifNoneMatch: "\"b\""], [:]]
            let tasks = try await start((0..<30).map { kinds[$0 % 3] }, fixture)
            gate.open()
            for (number, task) in tasks.enumerated() {
                let (response, text) = try await task.value
                #expect(response.head.status.code == (number % 3 == 1 ? 304 : 200))
                #expect(text == (number % 3 == 1 ? "" : "new"))
            }
            #expect(fixture.transport.sent.count == 1)
            // It was stored although some wanted no body.
            try await #expect(fixture.get().response.source == .hit)
        }
    }

    @Test func conditionsOnAMissAreAskedOnceAndThenForAll() async throws {
        try await Fixture.run({ $0.caching = .gateway }) { fixture in
            let gate = Latch()
            fixture.transport.handler = { request throws(TransportError) in
                await gate.wait()
                if request.head.headerFields[.ifNoneMatch] == "\"a\"" { return .answer(304, [.eTag: "\"a\""]) }
                return .answer(200, [.eTag: "\"a\"", .cacheControl: "max-age=60"], "whole")
            }
            let tasks = try await start(
                (0..<20).map { [.ifNoneMatch: $0 < 10 ? "\"a\"" : "\"b\""] }, fixture, joined: 19)
            gate.open()
            for (number, task) in tasks.enumerated() {
                let (response, text) = try await task.value
                #expect(response.head.status.code == (number < 10 ? 304 : 200))
                #expect(text == (number < 10 ? "" : "whole"))
            }
            #expect(fixture.transport.sent.map { $0.head.headerFields[.ifNoneMatch] } == ["\"a\"", nil])
            try await #expect(fixture.get().response.source == .hit)
        }
    }

    /// A reload that waits for another's gets nothing from the store that the other did not validate.
    @Test func aReloadIsNotAnsweredWithWhatWasNotValidated() async throws {
        try await Fixture.run({ $0.caching = .gateway }) { fixture in
            fixture.answer("old")
            _ = try await fixture.get()
            await fixture.cache.drain()
            fixture.clock.advance(by: .seconds(1))
            _ = fixture.transport.takeSent()
            let gate = Latch()
            fixture.transport.handler = { _ throws(TransportError) in
                await gate.wait()
                return .answer(503, [:], "busy")
            }
            let tasks = try await start((0..<3).map { _ in [.cacheControl: "no-cache"] }, fixture, joined: 2)
            let waiting = fixture.cache.loader.joinable.waiting(
                Fixture.url, generation: fixture.cache.changes.generations.current(Fixture.url))
            try await waitWhile { (waiting?.waiterCount ?? 0) < 2 }
            gate.open()
            for task in tasks { try await #expect(task.value.text == "busy") }
        }
    }

    @Test(arguments: ["no-cache", "max-age=0"])
    func aReloadSharesOnlyWhatIsSentAfterIt(_ directive: String) async throws {
        try await withStale { fixture in
            let gate = Latch()
            fixture.transport.handler = { [transport = fixture.transport] _ throws(TransportError) in
                let number = transport.sent.count
                await gate.wait()
                return .answer(200, [.eTag: "\"n\(number)\"", .cacheControl: "max-age=60"], "\(number)")
            }
            let tasks = try await start(
                (0..<20).map { _ in [.cacheControl: directive] }, fixture, joined: 2)
            // The first is with the origin; the others wait for one that is sent later.
            let waiting = fixture.cache.loader.joinable.waiting(
                Fixture.url, generation: fixture.cache.changes.generations.current(Fixture.url))
            try await waitWhile { (waiting?.waiterCount ?? 0) < 19 }
            #expect(fixture.transport.sent.count == 1)
            gate.open()
            for (number, task) in tasks.enumerated() {
                let (_, text) = try await task.value
                #expect(text == (number == 0 ? "1" : "2"))
            }
            #expect(fixture.transport.sent.count == 2)
        }
    }

    /// Callers that come while others wait would keep a request that hangs going forever.
    @Test func aRequestThatHangsIsJoinedForAWhileOnly() async throws {
        try await Fixture.run({ $0.caching = .gateway }) { fixture in
            let gate = Latch()
            fixture.transport.handler = { [transport = fixture.transport] _ throws(TransportError) in
                let number = transport.sent.count
                if number == 1 { await gate.wait() }
                return .answer(200, [.cacheControl: "max-age=60"], "\(number)")
            }
            let hanging = try await start([[:], [:]], fixture)
            fixture.clock.advance(by: .milliseconds(9_999))
            let joined = Task { try await fixture.get().text }
            let joinable = fixture.cache.loader.joinable
            let generation = fixture.cache.changes.generations.current(Fixture.url)
            try await waitWhile { joinable.leading(Fixture.url, generation: generation)?.waiterCount != 3 }
            fixture.clock.advance(by: .milliseconds(1))
            try await #expect(fixture.get().text == "2")
            gate.open()
            try await #expect(joined.value == "1")
            for task in hanging { try await #expect(task.value.text == "1") }
            #expect(fixture.transport.sent.count == 2)
        }
    }

    /// One that hangs is not asked again and again.
    @Test func aValidationInTheBackgroundThatHangsIsTheOnlyOne() async throws {
        try await withStale("max-age=60, stale-while-revalidate=600") { fixture in
            let gate = Latch()
            fixture.transport.handler = { _ throws(TransportError) in
                await gate.wait()
                return .answer(200, [.cacheControl: "max-age=60"], "new")
            }
            try await #expect(fixture.get().text == "old")
            await fixture.transport.waitForRequests()
            fixture.clock.advance(by: .seconds(60))
            try await #expect(fixture.get().text == "old")
            #expect(fixture.transport.sent.count == 1)
            gate.open()
        }
    }

    /// How many requests reach the origin when eight clients ask at once for what may be stored.
    private func originRequestsOfACrowd(_ fixture: Fixture) async throws -> Int {
        _ = fixture.transport.takeSent()
        let gate = Latch()
        fixture.transport.handler = { _ throws(TransportError) in
            await gate.wait()
            return .answer(200, [.cacheControl: "max-age=60"], "x")
        }
        let tasks = try await start(Array(repeating: [:], count: 8), fixture)
        gate.open()
        for task in tasks { _ = try await task.value }
        return fixture.transport.sent.count
    }

    @Test func credentialsDoNotEndCollapsingForOthers() async throws {
        try await Fixture.run({ $0.caching = .gateway }) { fixture in
            fixture.answer("x")
            let (answer, _) = try await fixture.get(fields: [.authorization: "Bearer 1"])
            #expect(!answer.isStored)
            try await #expect(originRequestsOfACrowd(fixture) == 1)
        }
    }

    @Test func whatOneRequestForbidsDoesNotEndCollapsing() async throws {
        try await Fixture.run({ $0.caching = .gateway }) { fixture in
            fixture.answer("x")
            _ = try await fixture.get(fields: [.cacheControl: "no-store"])
            fixture.answer("busy", status: 503, [:])
            _ = try await fixture.get()
            try await #expect(originRequestsOfACrowd(fixture) == 1)
        }
    }

    /// What one client can provoke with its own fields does not tell that the resource cannot be stored.
    @Test(arguments: [400, 403, 406, 416, 431]) func refusalsDoNotEndCollapsing(_ status: Int) async throws {
        try await Fixture.run({ $0.caching = .gateway }) { fixture in
            fixture.answer("no", status: status, [:])
            _ = try await fixture.get(fields: [.range: "bytes=1000-"])
            _ = try await fixture.get(fields: [.accept: "x/y"])
            try await #expect(originRequestsOfACrowd(fixture) == 1)
        }
    }

    @Test func headRequestsShareAValidation() async throws {
        try await withStale { fixture in
            let gate = Latch()
            fixture.transport.handler = { _ throws(TransportError) in
                await gate.wait()
                return .answer(304, [.eTag: "\"a\"", .cacheControl: "max-age=60"])
            }
            let tasks = try await start(
                Array(repeating: [:], count: 10), fixture, method: .head, key: Fixture.url + " HEAD")
            gate.open()
            for task in tasks {
                let (response, text) = try await task.value
                #expect(response.head.status == .ok && text == "")
            }
            #expect(fixture.transport.sent.count == 1)
        }
    }

    @Test func whoWaitsForAnOriginThatFailsGetsTheStaleResponse() async throws {
        try await withStale { fixture in
            let gate = Latch()
            fixture.transport.handler = { _ throws(TransportError) in
                await gate.wait()
                throw TransportError(.closed, mayHaveBeenSeen: true, "closed")
            }
            let tasks = try await start(Array(repeating: [:], count: 10), fixture)
            gate.open()
            for task in tasks {
                let (response, text) = try await task.value
                #expect(response.source == .fallback && text == "old")
                #expect(response.originError?.transport?.code == .closed)
            }
            #expect(fixture.transport.sent.count == 1)
        }
    }

    @Test(arguments: [nil, Int64(16)]) func requestsForTheSameRangeShareOne(_ sliceBytes: Int64?) async throws {
        try await Fixture.run({
            $0.caching = .gateway
            $0.sliceBytes = sliceBytes
        }) { fixture in
            let gate = Latch()
            let text = (0..<100).map { String($0 % 10) }.joined()
            fixture.transport.handler = { request throws(TransportError) in
                await gate.wait()
                guard case .bytes(let field) = RangeField.parse(Array((request.head.headerFields[.range] ?? "").utf8)),
                    let range = field.resolved(length: 100).first
                else { return .answer(500) }
                let content = ContentRange(range: range, completeLength: 100).fieldValue
                return .answer(
                    206, [.cacheControl: "max-age=60", .eTag: "\"a\"", .contentRange: content],
                    String(text.dropFirst(Int(range.lowerBound)).prefix(range.count)))
            }
            // In slices, those that ask for other bytes of the same slice share it, too.
            let ranges = (0..<10).map { sliceBytes == nil || $0 % 2 == 0 ? "bytes=18-21" : "bytes=20-29" }
            let flight = sliceBytes == nil ? "bytes=18-21" : "bytes=16-31"
            let tasks = try await start(
                ranges.map { [.range: $0] }, fixture, key: Fixture.url + JoinableLoads.rangeMark + flight)
            gate.open()
            for (task, range) in zip(tasks, ranges) {
                let (response, part) = try await task.value
                #expect(response.head.status == .partialContent)
                #expect(part == (range == "bytes=18-21" ? "8901" : "0123456789"))
                #expect(response.head.headerFields[.contentRange] == range.replacing("=", with: " ") + "/100")
            }
            #expect(fixture.transport.sent.count == 1)
        }
    }

    /// Some origins count one byte too many in `Content-Range`. Who asks gets what came, in a message as long as that.
    @Test func aPartThatIsShorterThanItSaysIsNotShared() async throws {
        try await Fixture.run({ $0.caching = .gateway }) { fixture in
            let gate = Latch()
            fixture.transport.handler = { _ throws(TransportError) in
                await gate.wait()
                return .answer(
                    206,
                    [
                        .cacheControl: "max-age=60", .eTag: "\"a\"", .contentRange: "bytes 0-9/100",
                        .contentLength: "9",
                    ], "012345678")
            }
            let tasks = try await start(
                Array(repeating: [.range: "bytes=0-9"], count: 3), fixture,
                key: Fixture.url + JoinableLoads.rangeMark + "bytes=0-9")
            gate.open()
            for task in tasks {
                let (response, part) = try await task.value
                #expect(part == "012345678")
                #expect(response.head.headerFields[.contentLength] == "9")
            }
        }
    }
}
