import Foundation
import HTTPTestSupport
import HTTPTypes
import Locks
import SystemPackage
import TestOrigin
import TestSupport
import Testing

@testable import Larder
@testable import LarderHTTP

/// Two processes with one store that miss the same response at once: the program, which asks a real origin, and a cache
/// of the test, which comes second.
struct SharedMissTests {
    private static let content = String(repeating: "0123456789", count: 5_000)
    private static let own: ScriptedTransport.Handler = { _ throws(TransportError) in
        .answer(200, [.cacheControl: "max-age=60"], "own")
    }

    /// A process that has half of the response that it loads, and a cache of the test that comes second.
    private struct Processes: Sendable {
        let url: String
        let first: Process
        /// Where the origin holds the second half.
        let gate: Gate
        let store: Store
        let cache: HTTPCache
        /// Of the second.
        let transport: ScriptedTransport
    }

    /// What the second process got.
    private struct Outcome: Sendable {
        let source: FetchResponse.Source
        let text: String
        /// How long it waited, each time.
        let pauses: [Duration]
        let requestCount: Int
        /// What it gets the next time.
        let again: String
    }

    /// The machine's date, and no time that passes: what a wait takes is the sum of its pauses.
    private struct StillClock: StoreClock {
        func now() -> Timestamp { SystemClock().now() }
        func uptime() -> UInt64 { 3_600_000_000_000 }
    }

    /// How long a claim is waited for.
    private static let claiming = Duration.milliseconds(100)

    /// A pause that ends with its task only.
    private static func never() async throws {
        await untilCancelled()
        throw CancellationError()
    }

    /// Runs `body` beside a process that has half of a response.
    /// - Parameters:
    ///   - content: of the response.
    ///   - cacheControl: of the response.
    ///   - isChunked: whether its length is not declared.
    ///   - validator: of the response.
    ///   - vary: of the response.
    ///   - isShared: whether it answers other queries, too.
    ///   - configure: the cache of the second.
    private func withProcesses(
        _ content: String = content, _ cacheControl: String = "max-age=600", isChunked: Bool = false,
        validator: String? = nil, vary: String? = nil, isShared: Bool = false,
        _ configure: @Sendable (inout HTTPCacheConfiguration) -> Void,
        _ body: @Sendable (Processes) async throws -> Void
    ) async throws {
        try await withOrigin { origin, place in
            let (url, gate) = (origin.url + "/w?id=1", Gate())
            let middle = content.utf8.count / 2
            var answer = OriginAnswer.ok(String(content.prefix(middle))).header("Cache-Control", cacheControl)
                .then(gate).then(String(content.suffix(middle)))
            if let validator { answer = answer.header("ETag", validator) }
            if let vary { answer = answer.header("Vary", vary) }
            if isShared { answer = answer.header("No-Vary-Search", "params=(\"id\")") }
            origin.script("/w", isChunked ? answer.chunked() : answer)
            let store = try await Store.open(at: FilePath(place.store))
            let first = try CommandRun.start(["fetch", url, "--store", place.store])
            await gate.arrival()
            var configuration = HTTPCacheConfiguration()
            configuration.clock = StillClock()
            configure(&configuration)
            let transport = ScriptedTransport(Self.own)
            let cache = HTTPCache(store: store, transport: transport, configuration: configuration)
            let processes = Processes(
                url: url, first: first, gate: gate, store: store, cache: cache, transport: transport)
            let result: Result<Void, any Error>
            do { result = .success(try await body(processes)) } catch { result = .failure(error) }
            gate.open()
            await first.exit()
            await cache.drain()
            try await store.close()
            try result.get()
        }
    }

    /// Has a second process ask for what the first has half of.
    /// - Parameters:
    ///   - content: of the response.
    ///   - cacheControl: of the response.
    ///   - isChunked: whether its length is not declared.
    ///   - wait: how long the second waits for the first. No time passes in its pauses, so this is a bound for the
    ///     number of looks.
    ///   - total: what the second has for its request.
    ///   - changesFirst: whether the second sends a POST to the same URL before it asks.
    ///   - act: does something when the second waits for the first time.
    private func second(
        _ content: String = content, _ cacheControl: String = "max-age=600", isChunked: Bool = false,
        wait: Duration = .seconds(36_000), total: Duration? = nil,
        changesFirst: Bool = false,
        _ act: @escaping @Sendable (Processes) async throws -> Void = { _ in }
    ) async throws -> Outcome {
        let outcome = Mutex<Outcome?>(nil)
        let pauses = Mutex<[Duration]>([])
        let running = Mutex<Processes?>(nil)
        try await withProcesses(content, cacheControl, isChunked: isChunked) { configuration in
            configuration.otherProcessWait = wait
            configuration.timeouts.total = total
            configuration.sleep = { pause in
                // The claim comes.
                if pause == Self.claiming { return try await Self.never() }
                let count = pauses.withLock { pauses in
                    pauses.append(pause)
                    return pauses.count
                }
                if count == 1, let processes = running.withLock({ $0 }) { try await act(processes) }
            }
        } _: { processes in
            running.withLock { $0 = processes }
            if changesFirst {
                var request = try HTTPCache.request(for: processes.url)
                request.method = .post
                _ = try await processes.cache.fetch(request, body: RequestBody([1])).body.bytes()
            }
            _ = processes.transport.takeSent()
            let response = try await processes.cache.fetch(processes.url)
            let text = String(decoding: try await response.body.bytes(), as: UTF8.self)
            let requestCount = processes.transport.sent.count
            processes.gate.open()
            await processes.first.exit()
            let again = try await processes.cache.fetch(processes.url).body.bytes()
            outcome.withLock { result in
                result = Outcome(
                    source: response.source, text: text, pauses: pauses.withLock { $0 },
                    requestCount: requestCount, again: String(decoding: again, as: UTF8.self))
            }
        }
        running.withLock { $0 = nil }
        return try #require(outcome.withLock { $0 })
    }

    @Test func theSecondGetsWhatTheFirstLoads() async throws {
        let second = try await second { $0.gate.open() }
        #expect(second.source == .hit && second.requestCount == 0)
        #expect(second.text == Self.content)
    }

    @Test func theSecondAsksWhenTheFirstDies() async throws {
        let second = try await second { processes in
            kill(processes.first.processIdentifier, SIGKILL)
            await processes.first.exit()
        }
        #expect(second.source == .network && second.text == "own" && second.requestCount == 1)
    }

    @Test func theSecondAsksAfterTheLimit() async throws {
        let second = try await second(wait: .milliseconds(100))
        #expect(second.source == .network && second.text == "own" && second.requestCount == 1)
        #expect(second.pauses.reduce(.zero, +) == .milliseconds(100))
    }

    @Test func withoutALimitTheSecondAsks() async throws {
        let second = try await second(wait: .zero)
        #expect(second.source == .network && second.pauses.isEmpty && second.requestCount == 1)
    }

    /// The first process says so as soon as it has the head.
    @Test func whatCannotBeStoredIsNotWaitedFor() async throws {
        let second = try await second(Self.content, "no-store")
        #expect(second.source == .network && second.text == "own" && second.requestCount == 1)
        #expect(second.pauses.reduce(.zero, +) < .seconds(36_000))
    }

    private static let long = String(repeating: "0123456789abcdef", count: 800_000)

    /// A long response, which the second follows.
    struct LongResponse: Sendable, CustomTestStringConvertible {
        var validator: String?
        var vary: String?
        var isChunked = false
        /// Whether it answers other queries, too.
        var isShared = false

        static let all =
            [false, true].flatMap { isChunked in
                [nil, "\"1\""].flatMap { validator in
                    [nil, "Accept-Encoding"].map {
                        LongResponse(validator: validator, vary: $0, isChunked: isChunked)
                    }
                }
            } + [
                LongResponse(isShared: true), LongResponse(isChunked: true, isShared: true),
                LongResponse(vary: "Accept-Encoding", isShared: true),
            ]

        var testDescription: String {
            [validator, vary, isChunked ? "chunked" : nil, isShared ? "shared" : nil].compactMap(\.self).joined(
                separator: " ")
        }
    }

    /// The second gets the first half while the origin holds the other one, and all of it from the store.
    @Test(arguments: LongResponse.all)
    func aLongResponseIsFollowedWhileItArrives(_ long: LongResponse) async throws {
        try await withProcesses(
            Self.long, isChunked: long.isChunked, validator: long.validator, vary: long.vary, isShared: long.isShared
        ) { configuration in
            configuration.otherProcessWait = .seconds(36_000)
            configuration.sleep = { pause in
                if pause == Self.claiming { return try await Self.never() }
            }
        } _: { processes in
            // Those who wait together, too.
            async let others = withThrowingTaskGroup(of: [UInt8].self) { group in
                for _ in 0..<3 {
                    group.addTask { try await processes.cache.fetch(processes.url).body.bytes() }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            let response = try await processes.cache.fetch(processes.url)
            #expect(response.source == .network)
            #expect(response.body.length == (long.isChunked ? nil : Int64(Self.long.utf8.count)))
            var bytes: [UInt8] = []
            var reader = response.body.makeAsyncIterator()
            while bytes.count < 1 << 20, let piece = try await reader.next() { bytes += piece }
            #expect(bytes.count >= 1 << 20)
            processes.gate.open()
            while let piece = try await reader.next() { bytes += piece }
            #expect(bytes == Array(Self.long.utf8))
            let all = try await others
            #expect(all.count == 3 && all.allSatisfy { $0 == bytes })
            await processes.first.exit()
            #expect(processes.transport.sent.isEmpty)
            let again = try await processes.cache.fetch(processes.url)
            #expect(again.source == .hit)
            #expect(try await again.body.bytes() == bytes)
            // The part is gone, and a variant is there.
            let keys = try await processes.store.perform { try $0.keys() }
            #expect(keys.count == 1 + (long.vary == nil ? 0 : 1) + (long.isShared ? 1 : 0), "\(keys)")
            #expect(!keys.contains { $0.text.contains(" part=") })
        }
    }

    /// What others may not have is not waited for: it has to be validated, or is for other requests.
    @Test(arguments: ["no-cache", "max-age=600"], [false, true])
    func aLongResponseThatCannotBeFollowed(_ control: String, _ isChunked: Bool) async throws {
        try await withProcesses(Self.long, control, isChunked: isChunked, validator: "\"1\"", vary: "X-Kind") {
            $0.otherProcessWait = .seconds(36_000)
        } _: { processes in
            var request = try HTTPCache.request(for: processes.url)
            if control != "no-cache" { request.headerFields[HTTPField.Name("X-Kind")!] = "other" }
            let response = try await processes.cache.fetch(request)
            #expect(try await response.body.bytes() == Array("own".utf8))
        }
    }

    /// Another answer of the origin may have another end.
    @Test(arguments: [false, true])
    func aLongResponseWithoutAValidatorEndsWithItsProcess(_ isChunked: Bool) async throws {
        try await withProcesses(Self.long, isChunked: isChunked) { configuration in
            configuration.otherProcessWait = .seconds(36_000)
            configuration.sleep = { pause in
                if pause == Self.claiming { return try await Self.never() }
            }
        } _: { processes in
            let response = try await processes.cache.fetch(processes.url)
            var reader = response.body.makeAsyncIterator()
            _ = try await reader.next()
            kill(processes.first.processIdentifier, SIGKILL)
            await processes.first.exit()
            await #expect(throws: FetchError.self) { while try await reader.next() != nil {} }
            #expect(processes.transport.sent.isEmpty)
            try await #expect(processes.store.listed(.incomplete).count == 1)
            let again = try await processes.cache.fetch(processes.url)
            #expect(try await again.body.bytes() == Array("own".utf8))
            // What the first has left is gone.
            try await #expect(processes.store.listed(.incomplete).isEmpty)
        }
    }

    /// After a second others can follow what is short, too, from its first byte.
    @Test(arguments: [nil, 300] as [Int64?]) func aSlowResponseCanBeFollowed(_ length: Int64?) async throws {
        // The store and the other process have the date of the machine: for them all of this must still be fresh.
        let clock = TestClock(wall: SystemClock().now())
        try await withProcesses { configuration in
            configuration.clock = clock
            configuration.sleep = { _ in try await Self.never() }
        } _: { processes in
            let url = "http://slow.example/"
            let (asked, gate) = (Latch(), Latch())
            let pieces = Pieces((0..<3).map { [UInt8](repeating: $0, count: 100) })
            let count = Atomic(0)
            processes.transport.handler = { _ throws(TransportError) in
                TransportResponse(
                    head: HTTPResponse(status: .ok, headerFields: [.cacheControl: "max-age=600"]),
                    body: TransportBody(length: length) { () async throws(TransportError) in
                        switch count.wrappingAdd(1, ordering: .relaxed).oldValue {
                        case 1: clock.advance(by: .seconds(2))
                        case 2:
                            asked.open()
                            await gate.wait()
                        default: break
                        }
                        return try pieces.next()
                    })
            }
            let response = try await processes.cache.fetch(url)
            await asked.wait()
            let arriving = try processes.cache.changes.responses.arriving(url, nil)
            let part = try #require(arriving.first?.part)
            try await #expect(
                part.bytes(in: 0..<300) == [UInt8](repeating: 0, count: 100) + [UInt8](repeating: 1, count: 100))
            gate.open()
            let bytes = try await response.body.bytes()
            var followed: [UInt8] = []
            for try await piece in part.follow() { followed += piece }
            await processes.cache.drain()
            #expect(bytes.count == 300 && bytes.last == 2 && followed == bytes)
            try await #expect(processes.cache.fetch(url).source == .hit)
            try await #expect(processes.store.listed(.prefix(Key(url))).count == 1)
        }
    }

    /// The process that loads dies, or is stopped and keeps its locks: the rest comes from the origin, and only that.
    @Test(arguments: [SIGKILL, SIGSTOP], [false, true])
    func aLongResponseIsContinuedWithoutItsProcess(_ signal: Int32, _ isChunked: Bool) async throws {
        try await withProcesses(Self.long, isChunked: isChunked, validator: "\"1\"") { configuration in
            configuration.otherProcessWait = .seconds(36_000)
            if signal == SIGSTOP { configuration.timeouts.read = .milliseconds(300) }
            configuration.sleep = { pause in
                if pause == Self.claiming { return try await Self.never() }
            }
        } _: { processes in
            let total = Self.long.utf8.count
            // On a busy machine the first process may seem to hang before it does.
            processes.transport.handler = { request throws(TransportError) in
                let range = request.head.headerFields[.range] ?? ""
                let first = Int(range.dropFirst("bytes=".count).prefix { $0 != "-" }) ?? 0
                return .answer(
                    206,
                    [
                        .cacheControl: "max-age=600", .eTag: "\"1\"",
                        .contentRange: "bytes \(first)-\(total - 1)/\(total)",
                    ], String(Self.long.dropFirst(first)))
            }
            let response = try await processes.cache.fetch(processes.url)
            var bytes: [UInt8] = []
            var reader = response.body.makeAsyncIterator()
            while bytes.count < 1 << 20, let piece = try await reader.next() { bytes += piece }
            kill(processes.first.processIdentifier, signal)
            if signal == SIGKILL { await processes.first.exit() }
            while let piece = try await reader.next() { bytes += piece }
            kill(processes.first.processIdentifier, SIGCONT)
            #expect(bytes == Array(Self.long.utf8))
            let sent = processes.transport.sent
            #expect(sent.count == 1 && sent.first?.head.headerFields[.ifRange] == "\"1\"")
        }
    }

    /// Half of the time that a request has is for the origin.
    @Test func theWaitLeavesTimeForTheOrigin() async throws {
        let second = try await second(total: .seconds(100))
        #expect(second.source == .network && second.text == "own" && second.requestCount == 1)
        #expect(second.pauses.reduce(.zero, +) <= .seconds(50))
    }

    /// The response would be from before the change (RFC 9111 section 4.4).
    @Test func whatWasAskedForBeforeAnInvalidationIsNotWaitedFor() async throws {
        let second = try await second(changesFirst: true) { processes in
            processes.gate.open()
            await processes.first.exit()
        }
        #expect(second.source == .network && second.text == "own" && second.requestCount == 1)
        #expect(second.pauses.isEmpty)
    }

    @Test func aPurgeEndsTheWait() async throws {
        let second = try await second { processes in
            try await processes.cache.purge(processes.url)
            processes.gate.open()
            await processes.first.exit()
        }
        #expect(second.source == .network && second.text == "own" && second.requestCount == 1)
        #expect(second.pauses == [.milliseconds(5)])
        // What it asked for after the purge is stored, and what is older does not take its place.
        #expect(second.again == "own")
    }

    /// All who waited get what one of them fetches then.
    @Test func aStaleResponseIsFetchedOnceForAllWhoWaited() async throws {
        let running = Mutex<Processes?>(nil)
        let count = 3
        try await withProcesses(Self.content, "max-age=0, stale-while-revalidate=600") { configuration in
            configuration.otherProcessWait = .seconds(36_000)
            configuration.sleep = { pause in
                if pause == Self.claiming { return try await Self.never() }
                guard let processes = running.withLock({ $0 }) else { return }
                let joinable = processes.cache.loader.joinable
                try await waitWhile { joinable.leading(processes.url, generation: 0)?.waiterCount != count }
                processes.gate.open()
            }
        } _: { processes in
            running.withLock { $0 = processes }
            let texts = try await withThrowingTaskGroup(of: String.self) { group in
                for _ in 0..<count {
                    group.addTask {
                        String(decoding: try await processes.cache.fetch(processes.url).body.bytes(), as: UTF8.self)
                    }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(texts == Array(repeating: "own", count: count))
            #expect(processes.transport.sent.count == 1)
        }
        running.withLock { $0 = nil }
    }

    /// Another process was stopped in a transaction: nothing can be claimed or stored.
    @Test func aHeldWriterLockDoesNotKeepTheSecondFromTheOrigin() async throws {
        try await withProcesses { configuration in
            // The time for the claim passes.
            configuration.sleep = { _ in }
        } _: { processes in
            processes.transport.handler = { _ throws(TransportError) in .answer(200, [.cacheControl: "no-store"], "own")
            }
            let (isHeld, isOver) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
            let holder = Thread {
                try? processes.store.engine.index.environment.write { _ in
                    isHeld.signal()
                    isOver.wait()
                }
            }
            holder.start()
            await withCheckedContinuation { continuation in
                DispatchQueue.global().async {
                    isHeld.wait()
                    continuation.resume()
                }
            }
            defer { isOver.signal() }
            for _ in 0..<2 {
                let response = try await processes.cache.fetch(processes.url)
                #expect(response.source == .network)
                try await #expect(response.body.bytes() == Array("own".utf8))
            }
        }
    }
}
