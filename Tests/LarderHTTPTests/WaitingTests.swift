#if DEBUG
    import HTTPTestSupport
    import HTTPTypes
    import Locks
    import TestSupport
    import Testing

    @testable import Larder
    @testable import LarderHTTP

    /// No task waits for a disk, a commit or room on a thread of the cooperative pool: every place of the engine where
    /// a thread may wait tells which thread that is.
    struct WaitingTests {
        static let tagged: HTTPFields = [.cacheControl: "max-age=60", .eTag: "\"a\""]

        @Test(arguments: [100, 3_000, 40_000, 1 << 20])
        func storingAResponse(_ length: Int) async throws {
            try await Fixture.run { fixture in
                fixture.answer(in: 16_000, length, Self.tagged)
                try await Watch.expectNone(fixture.store) {
                    for number in 0..<4 { _ = try await fixture.get("http://example.org/\(number)") }
                    await fixture.cache.drain()
                }
                try await #expect(fixture.get("http://example.org/1").response.source == .hit)
            }
        }

        @Test func storingWhereRoomHasToBeMade() async throws {
            try await Fixture.run(store: { $0.budget = Budget(bytes: .mebibytes(2)) }) { fixture in
                try await Watch.expectNone(fixture.store) {
                    for number in 0..<12 {
                        fixture.answer(in: 16_000, 300_000, Self.tagged, seed: number)
                        _ = try await fixture.get("http://example.org/\(number)")
                    }
                    await fixture.cache.drain()
                }
                let statistics = try await fixture.store.perform { try $0.statistics() }
                #expect(statistics.entryCount < 8)
            }
        }

        @Test(arguments: [100, 40_000])
        func freshening(_ length: Int) async throws {
            try await Fixture.run { fixture in
                fixture.answer(in: 16_000, length, Self.tagged)
                _ = try await fixture.get()
                await fixture.cache.drain()
                fixture.clock.advance(by: .seconds(100))
                fixture.transport.handler = { _ throws(TransportError) in .answer(304, Self.tagged) }
                try await Watch.expectNone(fixture.store) {
                    try await #expect(fixture.get().response.source == .revalidated)
                    await fixture.cache.drain()
                }
                try await #expect(fixture.get().response.source == .hit)
            }
        }

        @Test func variantsAndTheirRemoval() async throws {
            try await Fixture.run { fixture in
                fixture.transport.handler = { request throws(TransportError) in
                    let language = request.head.headerFields[.acceptLanguage] ?? ""
                    return .answer(200, [.cacheControl: "max-age=60", .vary: "Accept-Language"], language)
                }
                try await Watch.expectNone(fixture.store) {
                    for language in ["de", "en", "de"] {
                        _ = try await fixture.get(fields: [.acceptLanguage: language])
                        await fixture.cache.drain()
                    }
                    try await #expect(fixture.cache.purge(Fixture.url) == 2)
                }
            }
        }

        @Test func invalidating() async throws {
            try await Fixture.run { fixture in
                fixture.answer(in: 16_000, 40_000, Self.tagged)
                _ = try await fixture.get()
                await fixture.cache.drain()
                fixture.answer("done", status: 200, [:])
                try await Watch.expectNone(fixture.store) {
                    let request = try HTTPCache.request(for: Fixture.url, method: .post)
                    _ = try await fixture.cache.fetch(request, body: RequestBody([1])).body.bytes()
                    await fixture.cache.drain()
                }
                fixture.answer("new")
                try await #expect(fixture.get().response.source == .network)
            }
        }

        @Test func completingAPart() async throws {
            try await Fixture.run { fixture in
                fixture.transport.handler = { _ throws(TransportError) in
                    .answer(
                        HTTPResponse(
                            status: .init(code: 206),
                            headerFields: [
                                .cacheControl: "max-age=60", .eTag: "\"a\"", .contentRange: "bytes 0-39999/80000",
                            ]), body(40_000))
                }
                _ = try await fixture.get(fields: [.range: "bytes=0-39999"])
                await fixture.cache.drain()
                fixture.transport.handler = { _ throws(TransportError) in
                    .answer(
                        HTTPResponse(
                            status: .init(code: 206),
                            headerFields: [
                                .cacheControl: "max-age=60", .eTag: "\"a\"", .contentRange: "bytes 40000-79999/80000",
                            ]), body(40_000, 2))
                }
                try await Watch.expectNone(fixture.store) {
                    let whole = try await fixture.cache.fetch(HTTPCache.request(for: Fixture.url)).body.bytes()
                    #expect(whole == body(40_000) + body(40_000, 2))
                    await fixture.cache.drain()
                }
                try await #expect(fixture.get().response.source == .hit)
            }
        }

        @Test func leavingInTheMiddle() async throws {
            try await Fixture.run { fixture in
                let gate = Latch()
                fixture.transport.handler = { _ throws(TransportError) in
                    let pieces = Pieces([body(30_000), body(30_000, 2)])
                    return TransportResponse(
                        head: HTTPResponse(status: .ok, headerFields: Self.tagged),
                        body: TransportBody(length: nil) { () throws(TransportError) in
                            guard let piece = try pieces.next() else {
                                await gate.wait()
                                return nil
                            }
                            return piece
                        })
                }
                try await Watch.expectNone(fixture.store) {
                    do {
                        let response = try await fixture.cache.fetch(Fixture.url)
                        var pieces = response.body.makeAsyncIterator()
                        _ = try await pieces.next()
                    }
                    fixture.cache.cancelAll()
                    gate.open()
                    await fixture.cache.drain()
                }
            }
        }

        @Test func aBodyThatIsDueForVerification() async throws {
            try await withDirectory { path in
                let clock = TestClock()
                var configuration = Configuration.testing(clock: clock) {
                    $0.bootIdentity = 1
                    // The first to ask compares the body.
                    $0.isScrubbing = false
                }
                var store = try Store(at: path, configuration)
                for isFirst in [true, false] {
                    let transport = ScriptedTransport()
                    var options = HTTPCacheConfiguration()
                    options.clock = clock
                    let cache = HTTPCache(store: store, transport: transport, configuration: options)
                    let fixture = Fixture(cache: cache, transport: transport, clock: clock, store: store)
                    if isFirst {
                        fixture.answer(in: 16_000, 100_000, Self.tagged)
                        _ = try await fixture.get()
                        await cache.drain()
                        // The power is lost.
                        configuration.bootIdentity = 2
                        store = try store.reopenedAfterPowerLoss(configuration)
                        continue
                    }
                    let reads = Mutex(0)
                    try await Watch.expectNone(store, also: { if $0 == "pread" { reads.withLock { $0 += 1 } } }) {
                        let request = try HTTPCache.request(for: Fixture.url)
                        // What must not wait does not decide.
                        guard case .load(let pending) = try cache.answer(request, hasContent: false) else {
                            return #expect(Bool(false), "an event loop would have waited")
                        }
                        #expect(reads.withLock { $0 } == 0)
                        var plainHits = 0
                        cache.withPlainHit(
                            Key(Fixture.url), PlainQuestion(), HeldContentKinds<Int>(), values: { _ in nil }
                        ) {
                            _ in plainHits += 1
                        }
                        #expect(plainHits == 0 && reads.withLock { $0 } == 0)
                        let response = try await cache.load(pending, body: nil, onInformational: nil)
                        #expect(response.source == .hit)
                        try await #expect(response.body.bytes() == body(100_000, 1))
                        #expect(reads.withLock { $0 } > 0)
                        // Once is enough.
                        cache.withPlainHit(
                            Key(Fixture.url), PlainQuestion(), HeldContentKinds<Int>(), values: { _ in nil }
                        ) {
                            _ in plainHits += 1
                        }
                        #expect(plainHits == 1)
                    }
                }
                try finish(store)
            }
        }
    }

    extension Fixture {
        /// Answers every request with `length` bytes in pieces.
        fileprivate func answer(in size: Int, _ length: Int, _ fields: HTTPFields, seed: Int = 1) {
            transport.handler = { _ throws(TransportError) in
                let bytes = body(length, seed)
                let pieces = Pieces(
                    stride(from: 0, to: length, by: size).map { Array(bytes[$0..<min($0 + size, length)]) })
                return TransportResponse(
                    head: HTTPResponse(status: .ok, headerFields: fields),
                    body: TransportBody(length: Int64(length)) { () throws(TransportError) in try pieces.next() })
            }
        }
    }

    extension Store {
        /// The store as another run of the machine finds it, with what was committed; nothing tells that it was closed
        /// in order.
        fileprivate func reopenedAfterPowerLoss(_ configuration: Configuration) throws -> Store {
            try flush()
            let copy = path.removingLastComponent().appending("\(path.lastComponent!)-copy")
            try TestFiles.copy(path, to: copy)
            try close()
            TestFiles.remove(path)
            guard rename(copy.string, path.string) == 0 else { throw UnsoundStore() }
            return try Store(at: path, configuration)
        }
    }
#endif
