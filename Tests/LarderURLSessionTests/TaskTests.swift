import Foundation
import LarderHTTP
import LarderURLSession
import TestOrigin
import TestSupport
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Delegates, cancelling, time limits, and the tasks that Linux does not let through.
struct TaskTests {
    @Test func aDelegateGetsPieces() async throws {
        try await withBench(URLSessionCachingOptions(delivery: .pieces)) { bench in
            bench.origin.script("/a", .ok(GeneratedBytes(count: 5 << 20)).header("Cache-Control", "max-age=60"))
            let expected = GeneratedBytes(count: 5 << 20).bytes(in: 0..<(5 << 20))
            for _ in 0..<2 {
                let record = try await Recorder.load(bench.configuration, bench.request("/a"))
                #expect(record.pieces > 1 && [UInt8](record.data) == expected)
            }
            #expect(bench.count("/a") == 1)
        }
    }

    @Test func aLongBodyTakesLittleMemory() async throws {
        try await withBench(URLSessionCachingOptions(delivery: .pieces)) { bench in
            let length: Int64 = 96 << 20
            bench.origin.script("/a", .ok(GeneratedBytes(count: length)).header("Cache-Control", "no-store"))
            let cache = bench.cache
            let recorder = Recorder(keepsData: false) { _ in #expect(cache.heldBytes < 8 << 20) }
            let record = try await Recorder.load(bench.configuration, bench.request("/a"), recorder)
            #expect(record.bytes == length)
        }
    }

    /// On Linux what arrives too early waits in a file; elsewhere the server waits.
    @Test func aSlowDelegateCostsLittleMemory() async throws {
        try await withBench(URLSessionCachingOptions(delivery: .pieces)) { bench in
            let content = GeneratedBytes(count: 48 << 20)
            var answer = OriginAnswer.ok(content).header("Cache-Control", "no-store")
            answer.ending = .close
            bench.origin.script("/a", answer)
            let gate = DispatchSemaphore(value: 0)
            let recorder = Recorder { _ in gate.wait() }
            let session = bench.session(recorder)
            let task = session.dataTask(with: bench.request("/a"))
            task.resume()
            // The delegate stands at its first piece.
            #if canImport(FoundationNetworking)
                // The server sends all of it.
                await bench.origin.wait { $0.requests.count == 1 && $0.connectionsOpen == 0 }
            #else
                // What comes fills one place after the other, back to the socket.
                try await waitWhile { bench.transport.heldBytes < 512 << 10 }
            #endif
            #expect(bench.transport.heldBytes < 1 << 20 && bench.cache.heldBytes < 8 << 20)
            // No other session of the process waits for it.
            bench.origin.script("/b", .ok("other"))
            let other = try await bench.loadPlain(bench.request("/b"))
            #expect(other.text == "other")
            for _ in 0..<(48 << 10) { gate.signal() }
            let record = await recorder.end()
            #expect(record.error == nil && [UInt8](record.data) == content.bytes(in: 0..<(48 << 20)))
            #expect(bench.transport.heldBytes == 0)
            session.finishTasksAndInvalidate()
        }
    }

    #if canImport(FoundationNetworking)
        @Test func aReaderThatIsTooSlowGetsAnError() async throws {
            let origin = try await TestOrigin.start()
            // It never ends by itself, so the connection ends because the request is given up.
            let gate = Gate()
            origin.script("/a", .ok(GeneratedBytes(count: 4 << 20)).then(gate).then("rest"))
            let transport = URLSessionTransport(overflowLimit: 1 << 20)
            let request = try HTTPCache.request(for: origin.url + "/a")
            let response = try await transport.send(TransportRequest(head: request))
            // Nothing is read until the request has been given up.
            await origin.wait { $0.connectionsOpen == 0 }
            var received = 0
            let error = await #expect(throws: TransportError.self) {
                while let piece = try await response.body.next() { received += piece.count }
            }
            #expect(error?.code == .overloaded && received > 0 && received < 2 << 20)
            transport.close()
            await origin.stop()
        }
    #endif

    #if canImport(FoundationNetworking)
        @Test func aBodyOverTheLimitOfOnePieceFails() async throws {
            try await withBench(URLSessionCachingOptions(wholeBodyLimit: 1_000)) { bench in
                bench.origin.script("/a", .ok(GeneratedBytes(count: 1_001)))
                bench.origin.script("/b", .ok(GeneratedBytes(count: 1_000)))
                #expect(await errorCode { try await bench.load("/a") } == .dataLengthExceedsMaximum)
                let answer = try await bench.load("/b")
                #expect(answer.data.count == 1_000)
            }
        }
    #endif

    @Test func aTaskIsCancelled() async throws {
        try await withBench { bench in
            let gate = Gate()
            bench.origin.script("/a", .ok("late").holding(at: gate))
            let recorder = Recorder()
            let session = bench.session(recorder)
            let task = session.dataTask(with: bench.request("/a"))
            task.resume()
            await gate.arrival()
            task.cancel()
            let record = await recorder.end()
            #expect((record.error as? URLError)?.code == .cancelled)
            // The request is given up, too.
            await bench.origin.wait { $0.connectionsOpen == 0 }
            session.finishTasksAndInvalidate()
        }
    }

    @Test func aTaskIsCancelledInTheMiddleOfItsBody() async throws {
        try await withBench(URLSessionCachingOptions(delivery: .pieces)) { bench in
            let gate = Gate()
            bench.origin.script("/a", .ok(GeneratedBytes(count: 1 << 20)).then(gate).then("rest"))
            let seen = Gate()
            let recorder = Recorder { _ in Task { try await seen.wait() } }
            let session = bench.session(recorder)
            let task = session.dataTask(with: bench.request("/a"))
            task.resume()
            await seen.arrival()
            task.cancel()
            #expect((await recorder.end().error as? URLError)?.code == .cancelled)
            await bench.origin.wait { $0.connectionsOpen == 0 }
            session.finishTasksAndInvalidate()
        }
    }

    @Test func aSuspendedTaskWaits() async throws {
        try await withBench { bench in
            let gate = Gate()
            bench.origin.script("/a", .ok("hello").holding(at: gate))
            let recorder = Recorder()
            let session = bench.session(recorder)
            let task = session.dataTask(with: bench.request("/a"))
            task.resume()
            await gate.arrival()
            task.suspend()
            gate.open()
            await bench.cache.drain()
            #expect(task.state == .suspended && task.response == nil)
            task.resume()
            #expect(await recorder.end().answer?.text == "hello")
            #expect(bench.count("/a") == 1, "it was not sent again")
            session.finishTasksAndInvalidate()
        }
    }

    @Test func aServerThatDoesNotAnswerTimesOut() async throws {
        try await withBench { bench in
            bench.origin.script("/a", .silent)
            let request = bench.request("/a") { $0.timeoutInterval = 1 }
            #expect(await errorCode { try await bench.load(request) } == .timedOut)
        }
    }

    @Test func theWholeResourceHasALimit() async throws {
        try await withBench(session: { $0.timeoutIntervalForResource = 0.2 }) { bench in
            bench.origin.script("/a", .silent)
            #expect(await errorCode { try await bench.load("/a") } == .timedOut)
        }
    }

    @Test func failuresHaveTheErrorsOfURLSession() async throws {
        try await withBench { bench in
            bench.origin.script("/closed", .closed)
            bench.origin.script("/cut", OriginAnswer.ok("0123456789").truncated(after: 4))
            for path in ["/closed", "/cut"] {
                let plain = await errorCode { try await bench.loadPlain(bench.request(path)) }
                let cached = await errorCode { try await bench.load(path) }
                #expect(plain != nil && plain == cached, "\(path)")
            }
            await bench.origin.stop()
            let plain = await errorCode { try await bench.loadPlain(bench.request("/a")) }
            let cached = await errorCode { try await bench.load("/a") }
            #expect(plain != nil && plain == cached)
        }
    }

    @Test func aStoredResponseServesWhenTheServerIsGone() async throws {
        try await withBench { bench in
            bench.origin.script("/a", .ok("hello").header("Cache-Control", "max-age=0").header("ETag", "\"1\""))
            _ = try await bench.load("/a")
            await bench.origin.stop()
            let answer1 = try await bench.load("/a")
            #expect(answer1.text == "hello")
        }
    }

    @Test func manyTasksShareOneRequest() async throws {
        try await withBench { bench in
            let gate = Gate()
            bench.origin.script("/a", .ok("hello").header("Cache-Control", "max-age=60").holding(at: gate))
            let session = bench.session()
            try await withThrowingTaskGroup(of: String.self) { group in
                for _ in 0..<20 { group.addTask { try await session.answer(bench.request("/a")).text } }
                await gate.arrival()
                gate.open()
                for try await text in group { #expect(text == "hello") }
            }
            #expect(bench.count("/a") == 1)
        }
    }

    @Test func manyTasksAtOnce() async throws {
        try await withBench { bench in
            let session = bench.session()
            for number in 0..<100 {
                bench.origin.script("/\(number)", .ok("\(number)").header("Cache-Control", "max-age=60"))
            }
            for _ in 0..<2 {
                try await withThrowingTaskGroup(of: Bool.self) { group in
                    for number in 0..<100 {
                        group.addTask { try await session.answer(bench.request("/\(number)")).text == "\(number)" }
                    }
                    for try await isRight in group { #expect(isRight) }
                }
            }
            #expect(bench.origin.requests.count == 100)
        }
    }

    @Test func aDownloadGoesThroughTheCache() async throws {
        try await withBench { bench in
            try await withDirectory { directory in
                bench.origin.script("/a", .redirect(to: "/b"))
                bench.origin.script("/b", .ok(GeneratedBytes(count: 3 << 20)).header("Cache-Control", "max-age=60"))
                for name in ["one", "two"] {
                    let file = URL(fileURLWithPath: "\(directory)/\(name)")
                    let response = try await bench.caching.download(for: bench.request("/a"), to: file)
                    #expect(response.statusCode == 200 && response.url == bench.url("/b"))
                    #expect(try Data(contentsOf: file).count == 3 << 20)
                    await #expect(throws: CocoaError.self) {
                        try await bench.caching.download(for: bench.request("/b"), to: file)
                    }
                }
                #expect(bench.count("/b") == 1)
            }
        }
    }

    @Test func aFailedDownloadLeavesNoFile() async throws {
        try await withBench { bench in
            try await withDirectory { directory in
                bench.origin.script("/a", OriginAnswer.ok("0123456789").truncated(after: 4))
                let file = URL(fileURLWithPath: "\(directory)/file")
                await #expect(throws: URLError.self) {
                    try await bench.caching.download(for: bench.request("/a"), to: file)
                }
                #expect(!FileManager.default.fileExists(atPath: file.path))
            }
        }
    }

    @Test func aRequestMayBypassTheCache() async throws {
        try await withBench { bench in
            bench.origin.script("/a") { .counter($0).header("Cache-Control", "max-age=60") }
            let answer2 = try await bench.load("/a")
            #expect(answer2.text == "1")
            let answer3 = try await bench.load(bench.request("/a").bypassingCache)
            #expect(answer3.text == "2")
            let answer4 = try await bench.load("/a")
            #expect(answer4.text == "1")
            let (file, _) = try await bench.session().download(for: bench.request("/a").bypassingCache)
            #expect(try String(contentsOf: file, encoding: .utf8) == "3")
            try FileManager.default.removeItem(at: file)
        }
    }

    #if canImport(FoundationNetworking)
        @Test func aDownloadTaskFailsWithAnErrorOnLinux() async throws {
            try await withBench { bench in
                bench.origin.script("/a", .ok("x"))
                let recorder = Recorder()
                let record = await recorder.run(bench.session(recorder).downloadTask(with: bench.request("/a")))
                #expect((record.error as? URLError)?.code == .unsupportedURL)
                await #expect(throws: URLError.self) { try await bench.session().download(for: bench.request("/a")) }
                #expect(bench.origin.requests.isEmpty)
            }
        }

        @Test func anUploadTaskLoadsWithoutTheCacheOnLinux() async throws {
            try await withBench { bench in
                bench.origin.script("/a") { request in
                    request.method == "GET"
                        ? .counter(request).header("Cache-Control", "max-age=60") : .ok("got " + request.text)
                }
                let answer5 = try await bench.load("/a")
                #expect(answer5.text == "1")
                let request = bench.request("/a") { $0.httpMethod = "PUT" }
                let (data, _) = try await bench.session().upload(for: request, from: Data("content".utf8))
                #expect(String(decoding: data, as: UTF8.self) == "got content")
                try await bench.caching.invalidate(request)
                let answer6 = try await bench.load("/a")
                #expect(answer6.text == "3")
                let other = bench.request("/a") { $0.httpMethod = "DELETE" }
                await #expect(throws: URLError.self) {
                    try await bench.session().upload(for: other, from: Data("content".utf8))
                }
            }
        }
    #endif
}
