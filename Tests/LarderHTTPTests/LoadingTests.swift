import HTTPTestSupport
import HTTPTypes
import Larder
import LarderHTTP
import Locks
import TestSupport
import Testing

/// Loads that are shared, streamed, cancelled, repeated and limited.
struct LoadingTests {
    /// A transport whose body comes when a gate opens, piece by piece.
    private func gated(
        _ fixture: Fixture, _ pieces: [[UInt8]], head: Latch? = nil, body: Latch,
        fields: HTTPFields = [.cacheControl: "max-age=60"], length: Int64? = nil
    ) {
        fixture.transport.handler = { _ throws(TransportError) in
            await head?.wait()
            let rest = Pieces(pieces)
            let first = Mutex(true)
            return TransportResponse(
                head: HTTPResponse(status: .ok, headerFields: fields),
                body: TransportBody(length: length) { () throws(TransportError) in
                    // The first piece comes at once, the others through the gate.
                    if !first.withLock({ isFirst in
                        defer { isFirst = false }; return isFirst
                    }) {
                        await body.wait()
                    }
                    return try rest.next()
                })
        }
    }

    @Test func concurrentMissesShareOneRequestAndGetBytesWhileTheyArrive() async throws {
        try await Fixture.run { fixture in
            let (head, body) = (Latch(), Latch())
            gated(fixture, [Array("first".utf8), Array("second".utf8)], head: head, body: body)
            let readers = (0..<16).map { _ in
                Task {
                    let response = try await fixture.cache.fetch(Fixture.url)
                    var iterator = response.body.makeAsyncIterator()
                    let first = try await iterator.next()
                    return (first, iterator, response.cacheStatus?.isCollapsed)
                }
            }
            head.open()
            // No reader has to wait for the end, which comes when all have the beginning.
            for reader in readers { try await #expect(reader.value.0 == Array("first".utf8)) }
            body.open()
            var collapsed = 0
            for reader in readers {
                var (_, iterator, isCollapsed) = try await reader.value
                #expect(try await iterator.next() == Array("second".utf8))
                #expect(try await iterator.next() == nil)
                if isCollapsed == true { collapsed += 1 }
            }
            #expect(fixture.transport.sent.count == 1 && collapsed <= 15)
        }
    }

    @Test func whatCannotBeStoredDoesNotSerialiseTheOthers() async throws {
        try await Fixture.run { fixture in
            let (head, body) = (Latch(), Latch())
            // Every body hangs: would the second wait for the first, nothing would ever end.
            gated(fixture, [[1], [2]], head: head, body: body, fields: [.cacheControl: "no-store"])
            let readers = (0..<8).map { _ in Task { try await fixture.cache.fetch(Fixture.url) } }
            head.open()
            for reader in readers {
                let response = try await reader.value
                #expect(!response.isStored)
            }
            #expect(fixture.transport.sent.count == 8)
            body.open()
        }
    }

    @Test func aWaiterThatCancelsHarmsNobody() async throws {
        try await Fixture.run { fixture in
            let (head, body) = (Latch(), Latch())
            gated(fixture, [[1], [2]], head: head, body: body)
            let leader = Task { try await fixture.cache.fetch(Fixture.url) }
            await fixture.transport.waitForRequests()
            let follower = Task { try await fixture.cache.fetch(Fixture.url).body.bytes() }
            leader.cancel()
            #expect(await errorKind { _ = try await leader.value } == .cancelled)
            head.open()
            body.open()
            let bytes = try await follower.value
            #expect(bytes == [1, 2])
        }
    }

    /// The caller that asked has left, another waits, and the response can neither be shared nor fit the window.
    @Test func anAnswerThatNobodyWantsAnyMoreEnds() async throws {
        try await Fixture.run { fixture in
            let (head, body) = (Latch(), Latch())
            let pieces = (0..<64).map { [UInt8](repeating: UInt8($0), count: 32_768) }
            gated(fixture, pieces, head: head, body: body, fields: [.cacheControl: "no-store"])
            let leader = Task { try await fixture.cache.fetch(Fixture.url) }
            await fixture.transport.waitForRequests()
            let follower = Task { try await fixture.cache.fetch(Fixture.url).body.bytes().count }
            leader.cancel()
            #expect(await errorKind { _ = try await leader.value } == .cancelled)
            head.open()
            body.open()
            let count = try await follower.value
            #expect(count == 64 * 32_768)
            await fixture.cache.drain()
        }
    }

    @Test func aValidationInTheBackgroundThatCannotBeStoredEnds() async throws {
        try await Fixture.run { fixture in
            fixture.answer("old", [.cacheControl: "max-age=1, stale-while-revalidate=60"])
            _ = try await fixture.get()
            fixture.clock.advance(by: .seconds(10))
            let body = Latch()
            let pieces = (0..<64).map { [UInt8](repeating: UInt8($0), count: 32_768) }
            gated(fixture, pieces, body: body, fields: [.cacheControl: "no-store"])
            let (response, text) = try await fixture.get()
            #expect(response.source == .stale && text == "old")
            body.open()
            await fixture.cache.drain()
        }
    }

    @Test func aSlowReaderHoldsNobodyUp() async throws {
        try await Fixture.run { fixture in
            let pieces = (0..<64).map { [UInt8](repeating: UInt8($0), count: 32_768) }
            let body = Latch()
            gated(fixture, pieces, body: body)
            let slow = try await fixture.cache.fetch(Fixture.url)
            let fast = try await fixture.cache.fetch(Fixture.url)
            body.open()
            #expect(try await fast.body.bytes() == pieces.flatMap { $0 })
            #expect(try await fixture.get().response.source == .hit)
            // The slow one begins when all is over.
            #expect(try await slow.body.bytes() == pieces.flatMap { $0 })
        }
    }

    @Test func whoHasTheLastByteFindsItStored() async throws {
        try await Fixture.run { fixture in
            fixture.answer(String(repeating: "x", count: 20_000))
            for round in 0..<50 {
                let url = "http://example.org/\(round)"
                let response = try await fixture.cache.fetch(url)
                var count = 0
                var iterator = response.body.makeAsyncIterator()
                while count < 20_000, let piece = try await iterator.next() { count += piece.count }
                #expect(try await fixture.get(url).response.source == .hit)
            }
        }
    }

    @Test func theLastReaderThatGoesEndsTheLoad() async throws {
        try await Fixture.run { fixture in
            let body = Latch()
            gated(fixture, [[1], [2]], body: body)
            do {
                let response = try await fixture.cache.fetch(Fixture.url)
                var iterator = response.body.makeAsyncIterator()
                #expect(try await iterator.next() == [1])
            }
            body.open()
            await fixture.cache.drain()
            fixture.answer("whole")
            #expect(try await fixture.get().text == "whole")
        }
    }

    @Test func aCutOffBodyIsAnErrorAfterItsBytesAndNotStored() async throws {
        try await Fixture.run { fixture in
            fixture.transport.handler = { _ throws(TransportError) in
                .answer(
                    HTTPResponse(status: .ok, headerFields: [.cacheControl: "max-age=60"]), [1, 2, 3], isComplete: false
                )
            }
            let response = try await fixture.cache.fetch(Fixture.url)
            var iterator = response.body.makeAsyncIterator()
            #expect(try await iterator.next() == [1, 2, 3])
            #expect(await errorKind { _ = try await iterator.next() } == .origin)
            fixture.answer("whole")
            #expect(try await fixture.get().text == "whole")
        }
    }

    @Test func aCutOffBodyIsResumed() async throws {
        try await Fixture.run { fixture in
            let fields: HTTPFields = [.cacheControl: "max-age=60", .eTag: "\"1\"", .contentLength: "6"]
            fixture.transport.handler = { _ throws(TransportError) in
                .answer(HTTPResponse(status: .ok, headerFields: fields), Array("abc".utf8), isComplete: false)
            }
            _ = try? await fixture.get()
            await fixture.cache.drain()
            fixture.transport.handler = { request throws(TransportError) in
                #expect(request.head.headerFields[.range] == "bytes=3-")
                #expect(request.head.headerFields[.ifRange] == "\"1\"")
                return .answer(206, [.eTag: "\"1\"", .contentRange: "bytes 3-5/6", .contentLength: "3"], "def")
            }
            let (response, text) = try await fixture.get()
            #expect(response.head.status == .ok && text == "abcdef")
            #expect(try await fixture.get().response.source == .hit)
            #expect(try await fixture.get().text == "abcdef")
        }
    }

    @Test func aBodyTooLargeForTheStoreIsDelivered() async throws {
        try await Fixture.run(store: { $0.budget = Budget(bytes: .mebibytes(4)) }) { fixture in
            let pieces = (0..<160).map { [UInt8](repeating: UInt8($0), count: 65_536) }
            for length in [nil, Int64(160 * 65_536)] {
                let body = Latch()
                gated(fixture, pieces, body: body, length: length)
                body.open()
                let response = try await fixture.cache.fetch(Fixture.url)
                #expect(try await response.body.bytes() == pieces.flatMap { $0 })
            }
            fixture.answer("small")
            #expect(try await fixture.get().text == "small")
        }
    }

    @Test func cancellingByURLAndAll() async throws {
        try await Fixture.run { fixture in
            let gate = Latch()
            fixture.transport.handler = { _ throws(TransportError) in
                await gate.wait()
                throw TransportError(.cancelled, mayHaveBeenSeen: true, "given up")
            }
            let first = Task { try await fixture.cache.fetch("http://example.org/1") }
            let second = Task { try await fixture.cache.fetch("http://example.org/2") }
            await fixture.transport.waitForRequests(2)
            #expect(fixture.cache.cancel(url: "http://example.org/1") == 1)
            #expect(fixture.cache.cancel(url: "http://example.org/none") == 0)
            #expect(fixture.cache.cancelAll() == 2)
            gate.open()
            for task in [first, second] { #expect(await errorKind { _ = try await task.value } == .cancelled) }
        }
    }

    @Test func whatTheOriginMayHaveSeenIsNotRepeated() async throws {
        try await Fixture.run({
            $0.retries = RetryPolicy(limit: 2); $0.sleep = { _ in }
        }) { fixture in
            for (isSeen, count) in [(false, 3), (true, 1)] {
                fixture.transport.handler = { _ throws(TransportError) in
                    throw TransportError(.closed, mayHaveBeenSeen: isSeen, "closed")
                }
                #expect(await errorKind { _ = try await fixture.get() } == .origin)
                #expect(fixture.transport.takeSent().count == count)
            }
        }
        try await Fixture.run({
            $0.retries = RetryPolicy(limit: 1, repeatsIdempotent: true); $0.sleep = { _ in }
        }) { fixture in
            fixture.transport.handler = { _ throws(TransportError) in
                throw TransportError(.closed, mayHaveBeenSeen: true, "closed")
            }
            _ = await errorKind { _ = try await fixture.get() }
            #expect(fixture.transport.takeSent().count == 2)
            let post = try HTTPCache.request(for: Fixture.url, method: .post)
            _ = await errorKind { _ = try await fixture.cache.fetch(post) }
            #expect(fixture.transport.takeSent().count == 1)
        }
    }

    @Test func noHostGetsMoreThanItsShareAndTheUrgentGoFirst() async throws {
        try await Fixture.run({
            $0.requestsPerHost = 1; $0.collapsesRequests = false
        }) { fixture in
            let gate = Latch()
            fixture.transport.handler = { _ throws(TransportError) in
                await gate.wait()
                return .answer(200, [:], "x")
            }
            let first = Task { try await fixture.get("http://example.org/first").text }
            await fixture.transport.waitForRequests()
            let low = Task { try await fixture.get("http://example.org/low", FetchOptions(priority: .low)).text }
            try await waitWhile { fixture.cache.waitingRequests < 1 }
            let high = Task { try await fixture.get("http://example.org/high", FetchOptions(priority: .high)).text }
            try await waitWhile { fixture.cache.waitingRequests < 2 }
            #expect(fixture.transport.sent.count == 1)
            // Another host has places of its own.
            let other = Task { try await fixture.get("http://example.com/").text }
            await fixture.transport.waitForRequests(2)
            gate.open()
            for task in [first, low, high, other] {
                let text = try await task.value
                #expect(text == "x")
            }
            let order = fixture.transport.sent.filter { $0.head.authority == "example.org" }.map { $0.head.path }
            #expect(order == ["/first", "/high", "/low"])
        }
    }

    @Test func progressCountsBytes() async throws {
        try await Fixture.run { fixture in
            fixture.answer("0123456789")
            let seen = Mutex<[FetchProgress]>([])
            let options = FetchOptions(onProgress: { step in seen.withLock { $0.append(step) } })
            for _ in 0..<2 { _ = try await fixture.get(Fixture.url, options) }
            #expect(seen.withLock { $0.map(\.bytes) } == [10, 10])
            #expect(seen.withLock { $0.allSatisfy { $0.total == 10 } })
        }
    }

    @Test func credentialsAreSentAndNeverStored() async throws {
        try await Fixture.run({ $0.authorization = { $0 == "http://example.org" ? "Bearer sesame" : nil } }) {
            fixture in
            fixture.answer("x", [.cacheControl: "max-age=60", .vary: "Authorization"])
            _ = try await fixture.get()
            #expect(fixture.transport.sent[0].head.headerFields[.authorization] == "Bearer sesame")
            _ = try await fixture.get("http://example.com/")
            #expect(fixture.transport.sent[1].head.headerFields[.authorization] == nil)
            for try await attributes in try fixture.store.entries() {
                let text = String(decoding: attributes.metadata, as: UTF8.self)
                #expect(!text.contains("sesame"), "\(attributes.key)")
            }
        }
    }

    @Test func synchronousAndAsynchronousFromManyThreads() async throws {
        try await Fixture.run { fixture in
            fixture.transport.handler = { request throws(TransportError) in
                // For another order of events; nothing is waited for.
                await Task.yield()
                return .answer(200, [.cacheControl: "max-age=60"], request.head.path ?? "")
            }
            let failures = Counter()
            let finished = Counter()
            let cache = fixture.cache
            let (ends, end) = AsyncStream.makeStream(of: Void.self)
            let threads = await withTaskGroup { group in
                for number in 0..<64 {
                    group.addTask { [fixture] in
                        for round in 0..<20 {
                            let path = "/\((number + round) % 8)"
                            let text = try? await fixture.get("http://example.org\(path)").text
                            if text != path { failures.increment() }
                        }
                    }
                }
                let threads = Threads(64) { number in
                    defer { if finished.increment() == 64 { end.finish() } }
                    for round in 0..<20 {
                        let path = "/\((number + round) % 8)"
                        let body = try? cache.fetchAndWait("http://example.org\(path)").body.bytesAndWait()
                        if body != Array(path.utf8) { failures.increment() }
                    }
                }
                for await _ in ends {}
                return threads
            }
            try threads.join()
            #expect(failures.value == 0)
            #expect(fixture.transport.sent.count < 128)
        }
    }
}
