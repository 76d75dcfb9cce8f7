import Foundation
import Larder
import LarderHTTP
import LarderURLSession
import TestOrigin
import TestSupport
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A cache that lets go of its store while the process is suspended.
struct SuspensionTests {
    #if os(Linux)
        /// The files in a directory on which this process holds a lock, of flock(2) or fcntl(2): see
        /// proc_pid_fdinfo(5).
        private func locks(in directory: String) throws -> [String] {
            try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").compactMap { number in
                // Some are closed meanwhile, by other tests.
                guard
                    let path = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(number)"),
                    path.hasPrefix(directory + "/"),
                    let information = try? String(contentsOfFile: "/proc/self/fdinfo/\(number)", encoding: .utf8),
                    information.contains("lock:")
                else { return nil }
                return path
            }
        }

        @Test func noLockIsHeldWhileItIsSuspended() async throws {
            try await withBench(closesStore: true) { bench in
                bench.origin.script("/a") { .counter($0).header("Cache-Control", "max-age=60") }
                let path = bench.store.path
                let session = bench.session()
                let first = try await session.answer(bench.request("/a"))
                #expect(first.text == "1")
                #expect(try !locks(in: path.string).isEmpty)
                try await bench.caching.suspend()
                let held = try locks(in: path.string)
                #expect(held == [])
                #expect(bench.caching.isSuspended)
                // Requests load without a cache, in the same session.
                let second = try await session.answer(bench.request("/a"))
                #expect(second.text == "2")
                await #expect(throws: URLError.self) {
                    try await bench.caching.download(
                        for: bench.request("/a"), to: URL(fileURLWithPath: path.string + "-file"))
                }
                let store = try Store(at: path, .testing())
                bench.caching.resume(HTTPCache(store: store, transport: bench.transport))
                let third = try await session.answer(bench.request("/a"))
                #expect(third.text == "1" && bench.count("/a") == 2, "what was stored before is there")
                await bench.cache.drain()
                try await store.close()
            }
        }
    #endif

    @Test func tasksUnderWayFail() async throws {
        try await withBench(URLSessionCachingOptions(delivery: .pieces), closesStore: true) { bench in
            let gate = Gate()
            bench.origin.script("/waiting", .ok("late").holding(at: gate))
            bench.origin.script("/half", .ok(GeneratedBytes(count: 1 << 20)).then(gate).then("rest"))
            bench.origin.script("/stored", .ok(GeneratedBytes(count: 9 << 20)).header("Cache-Control", "max-age=60"))
            _ = try await Recorder.load(bench.configuration, bench.request("/stored"))
            let sawHalf = Gate()
            let sawStored = Gate()
            let blocked = DispatchSemaphore(value: 0)
            let recorders = [
                Recorder(), Recorder { _ in Task { try await sawHalf.wait() } },
                // A hit whose delegate stands.
                Recorder { _ in
                    Task { try await sawStored.wait() }
                    blocked.wait()
                },
            ]
            let sessions = zip(recorders, ["/waiting", "/half", "/stored"]).map { recorder, path in
                let session = bench.session(recorder)
                session.dataTask(with: bench.request(path)).resume()
                return session
            }
            await bench.origin.wait { $0.requests.count == 3 }
            await sawHalf.arrival()
            await sawStored.arrival()
            try await bench.caching.suspend()
            for _ in 0..<10_000 { blocked.signal() }
            for recorder in recorders {
                let error = await recorder.end().error
                #expect((error as? URLError)?.code == .networkConnectionLost)
            }
            for session in sessions { session.finishTasksAndInvalidate() }
            #expect(throws: LarderError.self) { try bench.store.get("x") }
        }
    }

    @Test func aSmallStoreTakesASmallMap() throws {
        try withDirectory { directory in
            let store = try Store(at: "\(directory)/store", .forAppExtension())
            #expect(Configuration.forAppExtension().indexMapSize == .mebibytes(32))
            for number in 0..<2_000 {
                try store.put([UInt8](repeating: UInt8(number % 251), count: 16 << 10), for: Key("key \(number)"))
            }
            try store.flush()
            let statistics = try store.statistics()
            #expect(statistics.allocatedBytes <= .megabytes(12) && statistics.entryCount > 100)
            try store.close()
        }
    }
}
