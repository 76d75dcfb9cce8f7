import Foundation
import LarderHTTP
import LarderURLSession
import TestOrigin
import TestSupport
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Sessions, stores and transports that end while tasks are under way; many tasks.
struct LifecycleTests {
    @Test func aSessionIsInvalidatedDuringLoads() async throws {
        try await withBench { bench in
            let gate = Gate()
            bench.origin.script("/a", .ok("late").holding(at: gate))
            let session = bench.session()
            let (codes, continuation) = AsyncStream<URLError.Code?>.makeStream()
            for _ in 0..<2 {
                session.dataTask(with: bench.request("/a")) { _, _, error in
                    continuation.yield((error as? URLError)?.code)
                }.resume()
            }
            await gate.arrival()
            session.invalidateAndCancel()
            var ended = codes.makeAsyncIterator()
            for _ in 0..<2 {
                let code = await ended.next()
                #expect(code == .cancelled)
            }
            await bench.origin.wait { $0.connectionsOpen == 0 }
        }
    }

    @Test func aSessionFinishesItsTasks() async throws {
        try await withBench { bench in
            let gate = Gate()
            bench.origin.script("/a", .ok("late").holding(at: gate))
            let recorder = Recorder()
            let session = bench.session(recorder)
            session.dataTask(with: bench.request("/a")).resume()
            await gate.arrival()
            session.finishTasksAndInvalidate()
            gate.open()
            #expect(await recorder.end().answer?.text == "late")
        }
    }

    @Test func theStoreIsClosedWhileTasksRun() async throws {
        try await withBench(closesStore: true) { bench in
            let gate = Gate()
            bench.origin.script("/a", .ok("hello").header("Cache-Control", "max-age=60").holding(at: gate))
            let session = bench.session()
            async let answer = session.answer(bench.request("/a"))
            await gate.arrival()
            try await bench.store.close()
            gate.open()
            // The answer of the network arrives; it cannot be stored.
            #expect(try await answer.text == "hello")
            bench.origin.script("/b", .ok("after"))
            let after = try await session.answer(bench.request("/b"))
            #expect(after.text == "after")
        }
    }

    @Test func theTransportIsClosedWhileTasksRun() async throws {
        try await withBench { bench in
            let gate = Gate()
            bench.origin.script("/a", .ok("late").holding(at: gate))
            let session = bench.session()
            async let code = errorCode { try await session.answer(bench.request("/a")) }
            await gate.arrival()
            bench.transport.close()
            #expect(await code != nil)
            #expect(await errorCode { try await session.answer(bench.request("/a")) } == .cannotConnectToHost)
            await bench.origin.wait { $0.connectionsOpen == 0 }
        }
    }

    /// The response and the cancelling race.
    @Test func cancelledWhileItsResponseArrives() async throws {
        try await withBench { bench in
            bench.origin.script("/a", .ok("hello").header("Cache-Control", "max-age=60"))
            bench.origin.script("/b", .ok("hello").header("Cache-Control", "no-store"))
            let session = bench.session()
            for round in 0..<100 {
                let outcome = await withCheckedContinuation { continuation in
                    let path = round % 2 == 0 ? "/a" : "/b"
                    let task = session.dataTask(with: bench.request(path)) { data, _, error in
                        continuation.resume(returning: (data, (error as? URLError)?.code))
                    }
                    task.resume()
                    DispatchQueue.global().asyncAfter(deadline: .now() + .microseconds(round * 50)) { task.cancel() }
                }
                #expect(outcome.0 == Data("hello".utf8) || outcome.1 == .cancelled)
            }
            let answer = try await session.answer(bench.request("/a"))
            #expect(answer.text == "hello")
        }
    }

    @Test func thousandsOfTasksAtOnce() async throws {
        try await withBench { bench in
            for number in 0..<20 {
                bench.origin.script("/\(number)", .ok("\(number)").header("Cache-Control", "max-age=60"))
            }
            let session = bench.session()
            await withTaskGroup(of: String?.self) { group in
                for number in 0..<3_000 {
                    group.addTask {
                        do {
                            let answer = try await session.answer(bench.request("/\(number % 20)"))
                            return answer.text == "\(number % 20)" ? nil : answer.text
                        } catch {
                            return "\(error)"
                        }
                    }
                }
                for await wrong in group { #expect(wrong == nil) }
            }
            #expect(bench.origin.requests.count == 20)
        }
    }

    /// Closing finds tasks that are completing. A task that was cancelled twice then ended the process on Linux.
    @Test func transportsAreClosedBehindTheirAnswers() async throws {
        let origin = try await TestOrigin.start()
        origin.script("/a", .ok("hello"))
        for round in 0..<300 {
            let transport = URLSessionTransport()
            let request = TransportRequest(head: try HTTPCache.request(for: origin.url + "/a"))
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<4 {
                    group.addTask {
                        guard let response = try? await transport.send(request) else { return }
                        if round % 2 == 0 { _ = try? await response.body.next() }
                    }
                }
                await group.next()
                transport.close()
            }
        }
        await origin.wait { $0.connectionsOpen == 0 }
        await origin.stop()
    }

    @Test func transportsComeAndGo() async throws {
        let origin = try await TestOrigin.start()
        origin.script("/a", .ok(GeneratedBytes(count: 1 << 20)))
        for _ in 0..<20 {
            let transport = URLSessionTransport()
            let request = TransportRequest(head: try HTTPCache.request(for: origin.url + "/a"))
            let response = try await transport.send(request)
            _ = try await response.body.next()
            // Dropped with most of its body unread.
        }
        await origin.wait { $0.connectionsOpen == 0 }
        await origin.stop()
    }
}
