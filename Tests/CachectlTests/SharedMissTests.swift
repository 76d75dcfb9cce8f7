import Foundation
import HTTPTestSupport
import HTTPTypes
import Larder
import LarderHTTP
import Synchronization
import SystemPackage
import TestOrigin
import TestSupport
import Testing

/// Two processes with one store that miss the same response at once: the program, which asks a real origin, and a cache
/// of the test, which comes second.
@Suite(.timeLimit(.minutes(3))) struct SharedMissTests {
    private static let content = String(repeating: "0123456789", count: 5_000)
    private static let own: ScriptedTransport.Handler = { _ throws(TransportError) in
        .answer(200, [.cacheControl: "max-age=60"], "own")
    }

    /// What the second process got.
    private struct Outcome: Sendable {
        let source: FetchResponse.Source
        let text: String
        /// How long it waited, each time.
        let pauses: [Duration]
        let requestCount: Int
    }

    /// Has a second process ask for what the first has half of.
    /// - Parameters:
    ///   - content: of the response.
    ///   - cacheControl: of the response.
    ///   - wait: how long the second waits for the first. No time passes in its pauses, so this is a bound for the
    ///     number of looks.
    ///   - act: does something when the second waits for the first time.
    private func second(
        _ content: String = content, _ cacheControl: String = "max-age=600", wait: Duration = .seconds(36_000),
        _ act: @escaping @Sendable (Gate, Process) async -> Void = { _, _ in }
    ) async throws -> Outcome {
        let outcome = Mutex<Outcome?>(nil)
        try await withOrigin { origin, place in
            let (url, gate) = (origin.url + "/w", Gate())
            let middle = content.utf8.count / 2
            origin.script(
                "/w",
                .ok(String(content.prefix(middle))).header("Cache-Control", cacheControl).then(gate)
                    .then(String(content.suffix(middle))))
            let store = try await Store.open(at: FilePath(place.store))
            let first = try CommandRun.start(["fetch", url, "--store", place.store])
            await gate.arrival()
            let pauses = Mutex<[Duration]>([])
            var configuration = HTTPCacheConfiguration()
            configuration.otherProcessWait = wait
            configuration.sleep = { pause in
                let count = pauses.withLock { pauses in
                    pauses.append(pause)
                    return pauses.count
                }
                if count == 1 { await act(gate, first) }
            }
            let transport = ScriptedTransport(Self.own)
            let cache = HTTPCache(store: store, transport: transport, configuration: configuration)
            let response = try await cache.fetch(url)
            let text = String(decoding: try await response.body.bytes(), as: UTF8.self)
            gate.open()
            await first.exit()
            await cache.drain()
            try await store.close()
            outcome.withLock { result in
                result = Outcome(
                    source: response.source, text: text, pauses: pauses.withLock { $0 },
                    requestCount: transport.sent.count)
            }
        }
        return try #require(outcome.withLock { $0 })
    }

    @Test func theSecondGetsWhatTheFirstLoads() async throws {
        let second = try await second { gate, _ in gate.open() }
        #expect(second.source == .hit && second.requestCount == 0)
        #expect(second.text == Self.content)
    }

    @Test func theSecondAsksWhenTheFirstDies() async throws {
        let second = try await second { _, first in
            kill(first.processIdentifier, SIGKILL)
            await first.exit()
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

    /// A client would not get any byte before the whole is there.
    @Test func aLongResponseIsNotWaitedFor() async throws {
        let second = try await second(String(repeating: "0123456789abcdef", count: 400_000))
        #expect(second.source == .network && second.text == "own" && second.requestCount == 1)
        #expect(second.pauses.reduce(.zero, +) < .seconds(36_000))
    }
}

extension Process {
    /// Waits for the end without holding a thread of the cooperative pool: the origin needs them.
    fileprivate func exit() async {
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async { [self] in
                waitUntilExit()
                continuation.resume()
            }
        }
    }
}
