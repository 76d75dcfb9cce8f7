import Foundation
import Larder
import LarderHTTP
import Logging
import NIOCore
import NIOEmbedded
import SeededData
import TestSupport
import Testing

@testable import LarderServer

/// A connection that gets random frames, most of them proper, in random pieces, without a socket: a model says what it
/// may send.
struct HTTP2RandomTests {
    private static let rounds = Int(ProcessInfo.processInfo.environment["LARDER_HTTP2_ROUNDS"] ?? "") ?? 20

    @Test(arguments: [false, true]) func whatIsSentIsWhatTheClientAllows(_ areDamaged: Bool) throws {
        try withStore { store in
            var complete = 0
            for seed in 0..<Self.rounds {
                let connection = try Connection(seed, store)
                try connection.run(areDamaged: areDamaged)
                complete += connection.complete
                connection.finish()
            }
            #expect(areDamaged || complete > 10 * Self.rounds)
        }
    }
}

/// Answers `/p/COUNT` and `/h/COUNT` as plain hits, from a mapping and from memory, and `/a/COUNT` on the long way.
private struct CountedService: HTTPService {
    let health: StoreHealth
    static let bytes: [UInt8] = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 / 7 ^ $0) }
    private static let buffer = ByteBuffer(bytes: bytes)
    private static let digest = Digest(bytes: [UInt8](repeating: 1, count: 32))!
    private static let fields = Array("Content-Type: text/plain\r\nSet-Cookie: a=b\r\n".utf8)

    static func count(_ path: some StringProtocol) -> Int { Int(path.dropFirst(3)) ?? 0 }

    func decide(_ request: ServiceRequest) -> ServiceDecision {
        let count = Self.count(request.head.path ?? "")
        return .answer(ServiceAnswer(200, body: ResponseBody([.bytes(Array(Self.bytes[..<count]))])))
    }

    func withPlainHit(_ request: PlainRequest, _ body: (ServiceHit) -> Void) -> Key? {
        let path = String(decoding: request.target, as: UTF8.self)
        let count = Int64(Self.count(path))
        Self.fields.withUnsafeBytes { fields in
            if request.question.isHead {
                body(ServiceHit(fields: fields, content: .none, length: count))
            } else if path.hasPrefix("/p/") {
                Self.bytes.withUnsafeBytes { body(ServiceHit(fields: fields, content: .bytes($0), length: count)) }
            } else if path.hasPrefix("/h/") {
                body(ServiceHit(fields: fields, content: .held(Self.buffer, Self.digest), length: count))
            }
        }
        return nil
    }
}

/// The connection, its client, and what the client knows.
private final class Connection {
    /// A stream as the client sees it.
    private struct Stream {
        let count: Int
        var isSent = false
        var balance = 0
        var received = 0
        var hasHead = false
        var isEnded = false
        var isReset = false
    }

    private let seed: Int
    private var random: SeededGenerator
    private let channel = EmbeddedChannel()
    private let worker: LarderServer.Worker
    private var window = 65_535
    private var initial = 65_535
    private var streams: [Int: Stream] = [:]
    private var next = 1
    /// Bytes that were received and are not a whole frame.
    private var held: [UInt8] = []
    /// The rules do not say any more what may be sent.
    private var isDamaged = false
    private var isOver = false
    private(set) var complete = 0

    init(_ seed: Int, _ store: Store) throws {
        self.seed = seed
        random = SeededGenerator(seed: UInt64(seed))
        var logger = Logger(label: "test")
        logger.logLevel = .critical
        var configuration = ServerConfiguration()
        configuration.logger = logger
        configuration.limits.heldBytes = 100_000
        let core = ServerCore(
            CountedService(health: StoreHealth(store, logger)), configuration, accessLog: nil)
        worker = LarderServer.Worker(channel.embeddedEventLoop, core)
        channel.connect(to: try SocketAddress(ipAddress: "127.0.0.1", port: 1), promise: nil)
        try channel.pipeline.syncOperations.addHandler(HTTP2Connection(worker, channel))
        receive()
        try send(
            Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + RawHTTP2Client.frame(RawHTTP2Client.settings, 0, 0, []))
    }

    func run(areDamaged: Bool) throws {
        for step in 0..<80 where !isOver {
            var frame = frame()
            if areDamaged, step > 20, Int.random(in: 0..<10, using: &random) == 0 {
                isDamaged = true
                for _ in 0..<Int.random(in: 1...3, using: &random) {
                    frame[Int.random(in: 0..<frame.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
                }
            }
            try send(frame)
        }
        guard !areDamaged else { return }
        #expect(!isOver, "seed \(seed): the connection ended")
        // With all windows open everything is answered.
        window += 1 << 30
        try send(RawHTTP2Client.grow(0, by: 1 << 30))
        for id in streams.keys.sorted() {
            guard let stream = streams[id], !stream.isReset, !stream.isEnded else { continue }
            streams[id]?.balance += 1 << 29
            try send(RawHTTP2Client.grow(id, by: 1 << 29))
            if !stream.isSent { try send(RawHTTP2Client.data(id, "", end: true)) }
        }
        for (id, stream) in streams where !stream.isReset {
            #expect(stream.isEnded && stream.received == stream.count, "seed \(seed), stream \(id)")
            complete += 1
        }
    }

    /// The connection ends, and what it held is counted out.
    func finish() {
        _ = try? channel.finish(acceptAlreadyClosed: true)
        channel.embeddedEventLoop.run()
        #expect(worker.counters.bytesHeld == 0, "seed \(seed)")
        #expect(worker.core.memory.held == 0, "seed \(seed)")
        #expect(worker.counters.connectionsOpen == 0, "seed \(seed)")
    }

    // MARK: The client

    private func frame() -> [UInt8] {
        let open = streams.filter { !$0.value.isReset && !$0.value.isEnded }.keys.sorted()
        switch Int.random(in: 0..<20, using: &random) {
        case 0..<8 where open.count < 90: return request()
        case 8, 9:
            let count = Int.random(in: 1...50_000, using: &random)
            window += count
            return RawHTTP2Client.grow(0, by: count)
        case 10..<14:
            guard let id = open.randomElement(using: &random) else { return request() }
            let count = Int.random(in: 1...50_000, using: &random)
            streams[id]?.balance += count
            return RawHTTP2Client.grow(id, by: count)
        case 14:
            initial = [0, 1, 100, 16_384, 65_535, 200_000].randomElement(using: &random) ?? 0
            let value = [initial >> 24, initial >> 16, initial >> 8, initial].map { UInt8($0 & 255) }
            return RawHTTP2Client.frame(RawHTTP2Client.settings, 0, 0, [0, 4] + value + [0, 1, 0, 0, 0, 0])
        case 15:
            guard let id = open.randomElement(using: &random) else { return request() }
            streams[id]?.isReset = true
            return RawHTTP2Client.frame(RawHTTP2Client.reset, 0, id, [0, 0, 0, 8])
        case 16:
            guard let id = open.first(where: { streams[$0]?.isSent == false }) else { return request() }
            streams[id]?.isSent = true
            return RawHTTP2Client.data(id, "", end: true)
        case 17: return RawHTTP2Client.frame(RawHTTP2Client.ping, 0, 0, [UInt8](repeating: 1, count: 8))
        case 18: return RawHTTP2Client.frame(2, 0, next, [0, 0, 0, 0, 7])
        default: return RawHTTP2Client.frame(77, 255, 3, [1, 2, 3])
        }
    }

    private func request() -> [UInt8] {
        let id = next
        next += 2 * Int.random(in: 1...3, using: &random)
        let count = [0, 1, 100, 5_000, 16_384, 16_385, 70_000, 300_000].randomElement(using: &random) ?? 0
        let kind = ["p", "h", "a"].randomElement(using: &random) ?? "a"
        let isHead = Int.random(in: 0..<10, using: &random) == 0
        let isSent = Int.random(in: 0..<8, using: &random) > 0
        streams[id] = Stream(count: isHead ? 0 : count, isSent: isSent)
        return RawHTTP2Client.request(id, isHead ? "HEAD" : "GET", "/\(kind)/\(count)", end: isSent)
    }

    private func send(_ bytes: [UInt8]) throws {
        var start = 0
        while start < bytes.count, channel.isActive {
            let end = min(bytes.count, start + Int.random(in: 1...max(1, bytes.count), using: &random))
            try channel.writeInbound(ByteBuffer(bytes: bytes[start..<end]))
            channel.embeddedEventLoop.run()
            start = end
        }
        receive()
    }

    // MARK: What comes

    private func receive() {
        while let bytes = try? channel.readOutbound(as: ByteBuffer.self) { held += bytes.readableBytesView }
        var position = 0
        while held.count - position >= 9 {
            let length = Int(held[position]) << 16 | Int(held[position + 1]) << 8 | Int(held[position + 2])
            #expect(length <= 16_384)
            guard held.count - position >= 9 + length else { break }
            let id = held[position + 5..<position + 9].reduce(0) { $0 << 8 | Int($1) }
            take(held[position + 3], held[position + 4], id, held[position + 9..<position + 9 + length])
            position += 9 + length
        }
        held.removeFirst(position)
    }

    private func take(_ type: UInt8, _ flags: UInt8, _ id: Int, _ payload: ArraySlice<UInt8>) {
        if type == RawHTTP2Client.goAway { isOver = true }
        guard !isDamaged else { return }
        let about = Comment(rawValue: "seed \(seed), stream \(id), frame \(type)")
        switch type {
        case RawHTTP2Client.headers:
            #expect(streams[id]?.hasHead == false, about)
            streams[id]?.hasHead = true
            end(flags, id)
        case RawHTTP2Client.data:
            #expect(streams[id]?.hasHead == true && streams[id]?.isEnded == false, about)
            guard let stream = streams[id] else { return }
            #expect(
                payload.elementsEqual(CountedService.bytes[stream.received..<stream.received + payload.count]), about)
            window -= payload.count
            streams[id]?.balance -= payload.count
            streams[id]?.received += payload.count
            #expect(payload.isEmpty || window >= 0 && initial + (streams[id]?.balance ?? 0) >= 0, about)
            end(flags, id)
        case RawHTTP2Client.reset:
            // An answer that is complete before its request.
            #expect(payload.elementsEqual([0, 0, 0, 0]) && streams[id]?.isEnded == true, about)
            streams[id]?.isSent = true
        default:
            #expect(id == 0, about)
        }
    }

    private func end(_ flags: UInt8, _ id: Int) {
        if flags & 1 == 1 { streams[id]?.isEnded = true }
    }
}
