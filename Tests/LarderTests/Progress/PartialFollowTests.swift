import Locks
import TestSupport
import Testing

@testable import Larder

/// Reading a body while it is written, in the same process.
struct PartialFollowTests {
    private let bytes = body(600_000)

    /// Reads a body to its end in a task; the pieces are passed on as they come.
    private func follow(
        _ body: PartialBody, from offset: Int64 = 0, _ read: Latch? = nil
    ) -> Task<[UInt8], any Error> {
        Task {
            var all: [UInt8] = []
            for try await piece in body.follow(from: offset) {
                #expect(piece.count <= 256 << 10)
                all += piece
                read?.open()
            }
            return all
        }
    }

    @Test(arguments: [0, 100, 450_000, 600_000])
    func aFollowerGetsWhatComesAndEndsWithTheCommit(_ offset: Int) async throws {
        try await withStore { store in
            let writer = try await store.perform { try $0.partialWriter(for: "k", total: 600_000) }
            try await writer.write(bytes[500_000...], at: 500_000)
            let body = try #require(try await store.partial("k"))
            #expect(body.isBeingWritten)
            let task = follow(body, from: Int64(offset))
            for start in stride(from: 400_000, through: 0, by: -100_000) {
                try await writer.write(bytes[start..<start + 100_000], at: Int64(start))
            }
            try await writer.commit()
            try await #expect(task.value == Array(bytes[offset...]))
        }
    }

    /// The digest may be wrong: only the commit tells.
    @Test func aFollowerDoesNotEndBeforeTheCommit() async throws {
        try await withStore { store in
            let writer = try await store.perform {
                try $0.partialWriter(for: "k", total: 600_000, digest: Digest.of([1]))
            }
            let task = follow(try #require(try await store.partial("k")))
            try await writer.write(bytes, at: 0)
            try await #expect(code { try await writer.commit() } == .digestMismatch)
            try await #expect(code { try await task.value } == .gone)
        }
    }

    enum End: CaseIterable { case suspended, dropped, cancelled, removed, replaced, closed }

    @Test(arguments: End.allCases)
    func aFollowerHearsThatNothingMoreComes(_ end: End) async throws {
        try await withDirectory { path in
            let store = try Store(at: path, .testing())
            var writer: PartialWriter? = try await store.perform { try $0.partialWriter(for: "k", total: 600_000) }
            try await writer?.write(bytes[..<200_000], at: 0)
            let body = try #require(try await store.partial("k"))
            let hasRead = Latch()
            let task = follow(body, hasRead)
            await hasRead.wait()
            switch end {
            case .suspended: try await writer?.suspend()
            case .dropped: writer = nil
            case .cancelled: await writer?.cancel()
            // The writer is idle, and does not hear of it by itself.
            case .removed: try await store.remove("k")
            case .replaced: try await store.put([1], for: "k")
            case .closed: try await store.close()
            }
            let expected: LarderError.Code = [.suspended, .dropped, .closed].contains(end) ? .incomplete : .gone
            try await #expect(code { try await task.value } == expected)
            if end == .removed {
                // So it is not in the way of another.
                try await store.perform { try $0.partialWriter(for: "k") }.cancel()
            }
            try await #expect(body.bytes(in: 0..<600_000) == Array(bytes[..<200_000]))
            writer = nil
            if end != .closed { try finish(store) }
        }
    }

    @Test func aFollowerThatIsCancelledEnds() async throws {
        try await withStore { store in
            let writer = try await store.perform { try $0.partialWriter(for: "k", total: 600_000) }
            let task = follow(try #require(try await store.partial("k")))
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            try await writer.write(bytes, at: 0)
            try await writer.commit()
        }
    }

    @Test func aBodyWithoutAWriterIsFollowedAsFarAsItGoes() async throws {
        try await withStore { store in
            let writer = try await store.perform { try $0.partialWriter(for: "k", total: 600_000) }
            try await writer.write(bytes[..<300_000], at: 0)
            try await writer.suspend()
            let body = try #require(try await store.partial("k"))
            let count = Mutex(0)
            let refusal = try await code {
                for try await piece in body.follow() { count.withLock { $0 += piece.count } }
            }
            #expect(refusal == .incomplete && count.withLock { $0 } == 300_000)
            // A writer that comes later brings the rest.
            let next = try await store.perform { try $0.partialWriter(for: "k") }
            let task = follow(body, from: 250_000)
            try await next.write(bytes[300_000...], at: 300_000)
            try await next.commit()
            try await #expect(task.value == Array(bytes[250_000...]))
        }
    }
}
