import HTTPTestSupport
import HTTPTypes
import LarderHTTP
import NIOCore
import Locks
import TestOrigin
import TestSupport
import Testing

@testable import LarderServer

/// What all clients together, and each of them, may use up.
struct MemoryTests {
    /// Stored below `/kept`, arriving without end below `/live`.
    static let transport = ScriptedTransport { request in
        if request.head.path?.hasPrefix("/kept") == true { return .text("kept", fresh) }
        return TransportResponse(
            head: HTTPResponse(status: .ok, headerFields: [.cacheControl: "no-store"]),
            body: TransportBody { () throws(TransportError) in [UInt8](repeating: 7, count: 64 << 10) })
    }

    /// Waits until the gateway holds at least this many bytes.
    private func waitForHeld(_ setting: Setting, _ count: Int) async throws {
        try await waitWhile { await setting.gateway.readCounters().heldBytes < count }
    }

    @Test func clientsThatDoNotReadAreShedBeyondTheMemoryLimit() async throws {
        try await withGateway(transport: Self.transport) {
            $0.limits.memoryBytes = 2 << 20
        } _: { setting in
            _ = try await exchange(setting.port, get("/kept"))
            var clients: [SlowClient] = []
            while await setting.gateway.readCounters().refusedRequests == 0 {
                let client = try SlowClient(port: setting.port)
                try client.send(get("/live"))
                await #expect(client.read(1) == 1)
                clients.append(client)
                await setting.settles()
            }
            // Some 300 KiB each.
            #expect((4...16).contains(clients.count), "\(clients.count)")
            let refused = try await exchange(setting.port, get("/kept/other"))
            #expect(refused.status == 503)
            #expect(refused["Retry-After"] == "1")
            try await #expect(exchange(setting.port, get("/kept")).text == "kept")
            await setting.gateway.tick()
            await #expect((1...4).contains(setting.gateway.readCounters().shedConnections))
            // The loads behind the connections that were closed end a moment later.
            try await waitWhile { await setting.gateway.readCounters().heldBytes > 2 << 20 }
            try await #expect(exchange(setting.port, get("/kept/other")).text == "kept")
            for client in clients { client.leave() }
            try await setting.waitForConnections(0)
            // The loads end a moment later.
            try await waitWhile { await setting.gateway.readCounters().heldBytes > 0 }
        }
    }

    /// A connection may end in the middle of the write of a piece: what its client had sent behind the request does not
    /// count from then on.
    @Test func clientsThatLeaveBeforeTheirRequestsAreReadCountNoMore() async throws {
        try await withGateway(transport: Self.transport) { setting in
            let more = get("/live", "X-Pad: \(String(repeating: "p", count: 4_000))")
            for _ in 0..<100 {
                let client = try await setting.connect()
                try await client.send(get("/live") + String(repeating: more, count: 8))
                _ = try await client.bytes(1)
                try await client.reset()
            }
            try await setting.waitForConnections(0)
            try await waitWhile { await setting.gateway.readCounters().heldBytes > 0 }
        }
    }

    /// An origin that sends interim responses of 18 MB before it answers.
    private static func chatty(_ told: Latch) -> ScriptedTransport {
        ScriptedTransport { request in
            let fields: HTTPFields = [.init("X-Hint")!: String(repeating: "z", count: 30_000)]
            let hint = HTTPResponse(status: .init(code: 103), headerFields: fields)
            for _ in 0..<600 { await request.onInformational?(hint) }
            told.open()
            return .text("done")
        }
    }

    @Test func interimResponsesThatAClientDoesNotTakeAreLeftOut() async throws {
        let told = Latch()
        try await withGateway(transport: Self.chatty(told)) { setting in
            let client = try SlowClient(port: setting.port)
            try client.send(get("/", "Connection: close"))
            await told.wait()
            let count = await client.read(.max)
            #expect((1..<600 * 30_000).contains(count), "\(count)")
        }
    }

    @Test func interimResponsesThatAnHTTP2ClientDoesNotTakeAreLeftOut() async throws {
        let told = Latch()
        try await withTLS(Self.chatty(told)) { setting, port in
            let client = try await RawHTTP2Client.connect(to: port, window: 1 << 20)
            try await client.setReading(false)
            try await client.send(RawHTTP2Client.request(1, "GET", "/"))
            await told.wait()
            try await client.setReading(true)
            var heads = 0
            while let frame = try await client.frame(), frame.type != RawHTTP2Client.data {
                if frame.type == RawHTTP2Client.headers { heads += 1 }
            }
            #expect((1..<600).contains(heads), "\(heads)")
            await client.close()
        }
    }

    /// A client that sends requests without a pause, and no piece that ends where one does.
    @Test func requestsInPiecesTakeNoMoreRoomThanOne() async throws {
        try await withGateway(transport: Self.transport) { setting in
            let worker = setting.gateway.server.workers[0]
            let (count, capacity) = try await worker.eventLoop.submit {
                let input = HTTP1Input(worker.core.headLimits)
                let text = Array(get("/" + String(repeating: "x", count: 1_000)).utf8)
                var found = 0
                for round in 0..<1_000 {
                    var piece = ByteBuffer(bytes: round == 0 ? text + text[..<7] : text[7...] + text[..<7])
                    input.keep(&piece)
                    while case .request = input.nextHead(worker, scheme: "http", hit: { _ in nil }) { found += 1 }
                }
                return (found, input.capacity)
            }.get()
            #expect(count == 1_000 && capacity <= 16 << 10, "\(count) \(capacity)")
        }
    }

    @Test func contentThatWaitsForItsOriginCounts() async throws {
        let gate = Gate()
        let transport = ScriptedTransport { request throws(TransportError) in
            try? await gate.wait()
            return .text("refused unread", status: 503)
        }
        try await withGateway(transport: transport) { setting in
            let client = try await setting.connect()
            try await client.send(get("/", "Content-Length: 100000", method: "POST"))
            try await client.send(body(60_000))
            try await waitForHeld(setting, 60_000)
            gate.open()
            try await #expect(client.response().status == 503)
            try await waitWhile { await setting.gateway.readCounters().heldBytes > 0 }
            try await client.close()
        }
    }

    /// Of a file nothing waits in memory, and a body that many clients share waits there once.
    @Test(arguments: [false, true]) func storedBodiesCountForWhatTheyTakeUp(_ isShared: Bool) async throws {
        let length = 16 << 20
        let content = [UInt8](repeating: 7, count: length)
        try await withGateway(
            transport: ScriptedTransport { _ in .whole(content, fresh) },
            storeMemory: isShared ? .mebibytes(65) : .zero
        ) { setting in
            try await setting.askOften("/")
            if isShared { try await setting.waitForSharedBody() }
            var clients: [SlowClient] = []
            for _ in 0..<4 {
                let client = try SlowClient(port: setting.port)
                try client.send(get("/"))
                await #expect(client.read(1) == 1)
                clients.append(client)
                await setting.settles()
            }
            let expected = isShared ? length..<length + 4_096 : 0..<4_096
            // A piece of a file that is on its way from the disk counts as well.
            try await waitWhile {
                await setting.gateway.tick()
                return await !expected.contains(setting.gateway.readCounters().heldBytes)
            }
            for client in clients { client.leave() }
            try await setting.waitForConnections(0)
            await #expect(setting.gateway.readCounters().heldBytes == 0)
        }
    }

    /// Clients that take something hold their place before those that take nothing.
    @Test func whoTakesLeastIsShedFirst() async throws {
        try await withGateway(transport: Self.transport) {
            $0.limits.memoryBytes = 1 << 20
        } _: { setting in
            var readers: [SlowClient] = []
            while await setting.gateway.readCounters().heldBytes < 1 << 20 {
                let client = try SlowClient(port: setting.port)
                try client.send(get("/live"))
                await #expect(client.read(1) == 1)
                readers.append(client)
                await setting.settles()
            }
            // Only the first continues reading: the counter shows when it has.
            let before = await setting.gateway.readCounters().bytesOut
            while await setting.gateway.readCounters().bytesOut == before { _ = await readers[0].read(64 << 10) }
            await setting.settles()
            await setting.gateway.tick()
            await #expect(setting.gateway.readCounters().shedConnections > 0)
            await #expect(readers[0].read(8 << 20) == 8 << 20)
        }
    }

    #if os(Linux)
        /// A client that stands still for a moment does not pay for another that holds much.
        @Test(arguments: [1, 2]) func theClientThatHoldsMostIsShedFirst(_ eventLoops: Int) async throws {
            try await withGateway(transport: Self.transport) {
                $0.limits.memoryBytes = 2 << 20
                $0.eventLoops = eventLoops
                // Both have addresses of this machine; by default each of their connections counts by itself.
                $0.limits.limitsLoopback = true
            } _: { setting in
                let honest = try SlowClient(port: setting.port)
                try honest.send(get("/live"))
                await #expect(honest.read(1) == 1)
                await setting.settles()
                var others: [SlowClient] = []
                while await setting.gateway.readCounters().refusedRequests == 0 {
                    let client = try SlowClient(port: setting.port, isOther: true)
                    try client.send(get("/live"))
                    await #expect(client.read(1) == 1)
                    others.append(client)
                    await setting.settles()
                }
                await setting.gateway.tick()
                await #expect(setting.gateway.readCounters().shedConnections > 0)
                await #expect(honest.read(8 << 20) == 8 << 20)
            }
        }
    #endif

    @Test func clientsThatHoldMostAreChosenFirst() throws {
        let tokens = (0..<6).map { _ in Counter() }
        func holder(
            _ index: Int, _ client: String?, held: Int, progress: Int64, since: UInt64 = 0
        ) throws -> Shedding.Holder {
            let address = try client.flatMap { ClientAddress(try SocketAddress(ipAddress: $0, port: 1)) }
            return Shedding.Holder(
                id: ObjectIdentifier(tokens[index]), client: address, bytes: held, progress: progress,
                since: .uptimeNanoseconds(since))
        }
        let holders = try [
            // By themselves: one that takes something, one that does not.
            holder(0, nil, held: 9_000, progress: 500), holder(1, nil, held: 400, progress: 0),
            // One client that drips, and two that hold as little as each other.
            holder(2, "192.0.2.2", held: 700, progress: 1), holder(3, "192.0.2.2", held: 900, progress: 1),
            holder(4, "192.0.2.3", held: 300, progress: 50), holder(5, "192.0.2.4", held: 270, progress: 0),
        ]
        func chosen(_ excess: Int) -> [Int] {
            Shedding.choose(holders, excess: excess).map { holder in
                tokens.firstIndex { ObjectIdentifier($0) == holder.id } ?? -1
            }
        }
        #expect(chosen(0) == [])
        #expect(chosen(900) == [3])
        #expect(chosen(100_000) == [3, 2, 1, 5, 4, 0])
        // Of those that take much the latest; how much says little.
        let late = try [
            holder(0, nil, held: 500, progress: 1 << 20, since: 1),
            holder(1, nil, held: 400, progress: 1 << 22, since: 3),
            holder(2, nil, held: 900, progress: 1 << 16, since: 2),
            holder(3, nil, held: 100, progress: 65_000, since: 0),
        ]
        let order = Shedding.choose(late, excess: 10_000).map { holder in
            tokens.firstIndex { ObjectIdentifier($0) == holder.id }
        }
        #expect(order == [3, 1, 2, 0])
    }

    @Test func aClientIsStalledWhileItsSystemAcknowledgesNothing() {
        let start = NIODeadline.now()
        var stall = Stall(1_000, at: start)
        stall.look(1_000, at: start + .milliseconds(100))
        #expect(stall.since == start)
        stall.look(900, at: start + .milliseconds(200))
        stall.look(900, at: start + .milliseconds(300))
        #expect(stall.since == start + .milliseconds(200))

        func areStalled(_ since: [NIODeadline?]) -> Bool {
            let sources = since.map {
                ClosedConnections.Source(bytes: 1, since: start, holder: nil, stalledSince: $0)
            }
            return Shedding.areStalled(sources, at: start + .milliseconds(250))
        }
        #expect(areStalled([start]) && areStalled([start, start]))
        #expect(!areStalled([]) && !areStalled([nil]) && !areStalled([start, nil]))
        #expect(!areStalled([start + .milliseconds(1)]))
    }

    @Test func whatClosedConnectionsHeldIsFollowedUntilItIsReleased() {
        var closed = ClosedConnections()
        let now = NIODeadline.now()
        var holders = [Counter(), Counter()]
        closed.add(
            [
                .init(bytes: 100, since: now, holder: holders[0]), .init(bytes: 10, since: now, holder: holders[1]),
                .init(bytes: 1, since: now, holder: nil),
            ], at: now)
        #expect(closed.bytes(at: now) == 110)
        // Of another connection, with the same load.
        closed.add([.init(bytes: 100, since: now, holder: holders[0])], at: now)
        #expect(closed.bytes(at: now + .milliseconds(499)) == 110)
        holders.removeFirst()
        #expect(closed.bytes(at: now) == 10)
        holders.removeFirst()
        #expect(closed.bytes(at: now) == 0)
    }

    @Test func whatClosedConnectionsHeldIsNotWaitedForWithoutEnd() {
        var closed = ClosedConnections()
        let (now, holder) = (NIODeadline.now(), Counter())
        closed.add([.init(bytes: 100, since: now, holder: holder)], at: now)
        #expect(closed.bytes(at: now + .milliseconds(499)) == 100)
        #expect(closed.bytes(at: now + .milliseconds(500)) == 0)
        withExtendedLifetime(holder) {}
    }

    @Test func connectionsOfOneClientAreLimited() async throws {
        try await withGateway(transport: Self.transport) {
            $0.limits.connectionsPerClient = 2
            $0.limits.limitsLoopback = true
        } _: { setting in
            let first = try await setting.connect()
            let second = try await setting.connect()
            _ = try await first.exchange(get("/kept"))
            _ = try await second.exchange(get("/kept"))
            let third = try await setting.connect()
            try await #expect(third.response().status == 503)
            try await #expect(third.rest().isEmpty)
            try await first.close()
            try await setting.waitForConnections(1)
            try await waitWhile { try setting.gateway.server.core.clients.connections(of: .loopback) > 1 }
            try await #expect(exchange(setting.port, get("/kept")).text == "kept")
            try await second.close()
            try await setting.waitForConnections(0)
            try await waitWhile { setting.gateway.server.core.clients.count > 0 }
        }
    }

    @Test func requestsOfOneClientAtOriginsAreLimited() async throws {
        let gate = Gate()
        let transport = ScriptedTransport { request in
            if request.head.path == "/slow" { try? await gate.wait() }
            return .text("done", request.head.path == "/kept" ? fresh : [.cacheControl: "no-store"])
        }
        try await withGateway(transport: transport) {
            $0.limits.requestsPerClient = 2
            $0.limits.limitsLoopback = true
        } _: { setting in
            _ = try await exchange(setting.port, get("/kept"))
            var slow: [RawClient] = []
            for count in 1...2 {
                let client = try await setting.connect()
                try await client.send(get("/slow", "Cache-Control: no-cache"))
                // The second waits for the first's answer, not at the gate.
                try await waitWhile { try setting.gateway.server.core.clients.requests(of: .loopback) < count }
                slow.append(client)
            }
            let other = try await setting.connect()
            let refused = try await other.exchange(get("/other"))
            #expect(refused.status == 429)
            #expect(refused["Retry-After"] == "1")
            // What is stored does not count.
            try await #expect(other.exchange(get("/kept")).text == "done")
            gate.open()
            for client in slow { try await #expect(client.response().text == "done") }
            try await #expect(other.exchange(get("/other")).text == "done")
            for client in slow + [other] { try await client.close() }
        }
    }

    /// A client that has all of an answer may ask again at once, even if the transport keeps the request.
    @Test(arguments: [true, false]) func theEndOfAnAnswerComesAfterItsPlaceIsFree(_ declaresLength: Bool) async throws {
        let kept = Mutex<[TransportRequest]>([])
        let transport = ScriptedTransport { request throws(TransportError) in
            kept.withLock { $0.append(request) }
            if request.head.path == "/failing" { throw TransportError(.closed, mayHaveBeenSeen: true, "closed") }
            return .text("done", [.cacheControl: "no-store"], declaresLength: declaresLength)
        }
        try await withGateway(transport: transport) {
            $0.limits.requestsPerClient = 1
            $0.limits.limitsLoopback = true
        } _: { setting in
            let client = try await setting.connect()
            for _ in 0..<100 {
                try await #expect(client.exchange(get("/whole")).status == 200)
                try await #expect(client.exchange(get("/whole", method: "HEAD")).status == 200)
                try await #expect(client.exchange(get("/failing")).status == 502)
            }
            try await client.close()
        }
    }

    @Test func clientsOnThisMachineAreNotLimitedOfThemselves() async throws {
        try await withGateway(transport: Self.transport) {
            $0.limits.connectionsPerClient = 0
            $0.limits.requestsPerClient = 0
        } _: { setting in
            try await #expect(exchange(setting.port, get("/kept")).text == "kept")
        }
    }

    @Test func aClientIsAnAddressOrANetwork() throws {
        func client(_ text: String) throws -> ClientAddress? {
            ClientAddress(try SocketAddress(ipAddress: text, port: 1))
        }
        try #expect(client("192.0.2.1") == client("192.0.2.1"))
        try #expect(client("192.0.2.1") != client("192.0.2.2"))
        try #expect(client("::ffff:192.0.2.1") == client("192.0.2.1"))
        try #expect(client("2001:db8::1") == client("2001:db8::ffff:ffff:ffff:ffff"))
        try #expect(client("2001:db8::1") != client("2001:db8:0:1::1"))
        try #expect(client("::c000:201") != client("192.0.2.1"))
        #expect(ClientAddress(nil) == nil)
        try #expect(ClientAddress(SocketAddress(unixDomainSocketPath: "/a")) == nil)
    }

    @Test(arguments: [(20, 10), (256, 128), (1_024, 512), (20_000, 15_904), (1_048_576, 1_044_480), (1, 1)])
    func descriptorsAreLeftForOriginsAndFiles(_ limit: Int, _ connections: Int) {
        #expect(DescriptorLimit.connections(within: limit) == connections)
    }
}

extension TransportResponse {
    /// A response whose content comes in one piece.
    fileprivate static func whole(_ bytes: [UInt8], _ fields: HTTPFields) -> TransportResponse {
        let isTaken = Counter()
        return TransportResponse(
            head: HTTPResponse(status: .ok, headerFields: fields),
            body: TransportBody(length: Int64(bytes.count)) { () throws(TransportError) in
                isTaken.increment() == 1 ? bytes : nil
            })
    }
}

extension ClientAddress {
    fileprivate static var loopback: ClientAddress {
        get throws { try #require(ClientAddress(try SocketAddress(ipAddress: "127.0.0.1", port: 1))) }
    }
}
