import HTTPTestSupport
import HTTPTypes
import LarderHTTP
import Locks
import TestOrigin
import TestSupport
import Testing

@testable import LarderServer

/// The end of a gateway: whatever is under way, no part of it runs or asks for an event loop afterwards.
struct StoppingTests {
    /// Content that is never complete, and an origin that waits for it.
    @Test func uploadsUnderWayEndWithTheGateway() async throws {
        for round in 0..<5 {
            try await withGateway(transport: ScriptedTransport.takingContent()) {
                $0.eventLoops = 2
            } _: { setting in
                var clients: [RawClient] = []
                let head = get("/", "Content-Length: 100000", method: "POST")
                for _ in 0..<30 {
                    let client = try await setting.connect()
                    try await client.send(head + "abc")
                    clients.append(client)
                }
                try await setting.waitForBytes(30 * (head.utf8.count + 3))
                await setting.gateway.stop(drain: .milliseconds(round))
                #expect(setting.gateway.server.core.tasks.isEmpty)
                for client in clients { _ = try? await client.rest() }
            }
        }
    }

    /// Answers that arrive in the moment in which the connections are cut.
    @Test func answersMayArriveAtTheVeryEnd() async throws {
        for _ in 0..<10 {
            let gate = Gate()
            let transport = ScriptedTransport { _ in
                try? await gate.wait()
                return .bytes(body(300_000, 1), [.cacheControl: "no-store"])
            }
            try await withGateway(transport: transport) { setting in
                var clients: [RawClient] = []
                for _ in 0..<8 {
                    let client = try await setting.connect()
                    try await client.send(get("/"))
                    await gate.arrival()
                    clients.append(client)
                }
                async let stopped: Void = setting.gateway.stop(drain: .zero)
                gate.open()
                await stopped
                #expect(setting.gateway.server.core.tasks.isEmpty)
                for client in clients { _ = try? await client.rest() }
            }
        }
    }

    /// A load that is not told when its last reader leaves, and reports an interim response when the gateway is gone.
    @Test func whatALoadTellsAfterTheEndIsDropped() async throws {
        let asked = Gate()
        let stopped = Gate()
        let told = Gate()
        let transport = ScriptedTransport { request throws(TransportError) in
            asked.open()
            let inform = request.onInformational
            // Not of this task, which is cancelled.
            await Task {
                try? await stopped.wait()
                await inform?(HTTPResponse(status: .init(code: 103)))
            }.value
            told.open()
            throw TransportError(.cancelled, mayHaveBeenSeen: true, "cancelled")
        }
        try await withGateway(transport: transport) { setting in
            let client = try await setting.connect()
            try await client.send(get("/"))
            try await asked.wait()
            await setting.gateway.stop(drain: .zero)
            stopped.open()
            try await told.wait()
            try await #expect(client.rest().isEmpty)
        }
    }

    @Test func aFurtherStopBringsTheEndForward() async throws {
        try await withRequestThatWaits { setting, client, _ in
            async let first: Void = setting.gateway.stop(drain: .seconds(3_600))
            await setting.gateway.stop(drain: .zero)
            await first
            try await #expect(client.rest().isEmpty)
        }
    }
}
