import SystemPackage
import TestSupport
import Testing

@testable import Larder

@Suite struct BodyTests {
    @Test(arguments: [1000, 10_000])
    func rangesAreCutToTheBody(_ length: Int) throws {
        try withStore { store in
            let bytes = body(length)
            try store.put(bytes, for: "k")
            try store.flush()
            let stored = try #require(try store.get("k")).body
            let size = Int64(length)
            let ranges: [(Range<Int64>, Range<Int>)] = [
                (0..<size, 0..<length), (0..<1, 0..<1), (size - 1..<size, length - 1..<length), (10..<20, 10..<20),
                (0..<0, 0..<0), (5..<5, 5..<5), (size - 5..<size + 100, length - 5..<length), (-10..<3, 0..<3),
                (size + 1..<size + 5, length..<length), (-5..<(-1), 0..<0), (Int64.min..<Int64.max, 0..<length),
            ]
            for (asked, expected) in ranges {
                try #expect(stored.bytes(in: asked) == Array(bytes[expected]), "\(asked)")
            }
        }
    }

    @Test(arguments: [0, 1000, 10_000], [1, 999, 1000, 1_000_000])
    func chunksAreTheBodyInOrder(_ length: Int, _ size: Int) async throws {
        try await withStore { store in
            let bytes = body(length)
            try await store.put(bytes, for: "k")
            try await store.perform { try $0.flush() }
            let stored = try #require(try await store.get("k")).body
            guard length / size <= 1000 else { return }
            var collected: [UInt8] = []
            for try await chunk in stored.chunks(ofSize: ByteCount(size)) {
                #expect(chunk.count == min(size, length - collected.count))
                collected += chunk
            }
            #expect(collected == bytes)
        }
    }

    @Test func aCancelledTaskStopsReadingChunks() async throws {
        try await withStore { store in
            try await store.put(body(100_000), for: "k")
            let stored = try #require(try await store.get("k")).body
            let task = Task {
                var count = 0
                await untilCancelled()
                for try await _ in stored.chunks(ofSize: 1000) { count += 1 }
                return count
            }
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
        }
    }

    @Test func aLargeBodyHasAFileAndASmallOneHasNot() throws {
        try withStore { store in
            for flushes in [false, true] {
                try store.put(body(1000), for: "small")
                try store.put(body(10_000), for: "large")
                if flushes { try store.flush() }
                try #expect(store.get("small")?.body.withFileDescriptor { $0.rawValue } == nil)
                let stored = try #require(try store.get("large")).body
                let read = try #require(
                    try stored.withFileDescriptor { file in
                        var bytes = [UInt8](repeating: 0, count: 10_000)
                        let count = try bytes.withUnsafeMutableBytes { try file.read(fromAbsoluteOffset: 0, into: $0) }
                        #expect(count == 10_000)
                        return bytes
                    })
                #expect(read == body(10_000))
            }
        }
    }

    @Test func withBodyLendsTheBytesOfEveryKindOfEntry() throws {
        try withStore(configuration: .holding) { store in
            try store.put(body(1000), for: "small")
            try store.put(body(10_000), for: "large")
            try store.put(body(500), for: "memory", PutOptions(storagePolicy: .memoryOnly))
            try store.put([], for: "empty")
            for flushes in [false, true] {
                if flushes { try store.flush() }
                for (key, length) in [("small", 1000), ("large", 10_000), ("memory", 500), ("empty", 0)] {
                    let lent = try store.withBody(of: Key(key)) { span in
                        (0..<span.byteCount).map { span.unsafeLoad(fromByteOffset: $0, as: UInt8.self) }
                    }
                    #expect(lent == body(length), "\(key)")
                }
            }
            // Each is an access.
            try #expect(store.attributes(of: "small")?.hitCount == 2)
        }
    }

    @Test func withBodyPassesErrorsOnAndTheStoreGoesOn() throws {
        struct Stop: Error {}
        try withStore { store in
            try store.put(body(1000), for: "k")
            try store.flush()
            #expect(throws: Stop.self) { try store.withBody(of: "k") { _ in throw Stop() } }
            try #expect(store.bytes("k") == body(1000))
        }
    }

    @Test func aBodyOutlivesItsEntryAndTheStore() throws {
        try withDirectory { path in
            let store = try Store(at: path, .testing())
            try store.put(body(1000), for: "small")
            try store.put(body(100_000), for: "large")
            try store.flush()
            let small = try #require(try store.get("small")).body
            let large = try #require(try store.get("large")).body
            try store.clear()
            try verify(store)
            try store.close()
            try #expect(small.bytes() == body(1000))
            try #expect(large.bytes() == body(100_000))
        }
    }

    @Test func aFileThatBecameShorterIsCorruptionNotFewerBytes() throws {
        try withDirectory { path in
            let store = try Store(at: path, .testing())
            try store.put(body(100_000), for: "k")
            try store.flush()
            let stored = try #require(try store.get("k")).body
            try TestFiles.truncate(store.blobPath(Digest.of(body(100_000))), to: 50_000)
            try #expect(code { try stored.bytes() } == .corruption)
            try #expect(code { try stored.bytes(in: 49_999..<50_001) } == .corruption)
            try #expect(stored.bytes(in: 0..<50_000) == Array(body(100_000)[..<50_000]))
            try store.close()
        }
    }
}
