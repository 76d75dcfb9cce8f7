import Larder
import TestSupport
import Testing

@testable import LarderHTTP

/// A body that arrives, apart from what brings it.
struct SpoolTests {
    /// A thread that cancels a task holds the task's status lock while it runs the task's cancellation handler, which
    /// takes the lock of the spool. Resuming the task takes the same two locks: it must not hold the second by then.
    @Test func aReaderMayBeCancelledWhileItIsWoken() async {
        await withTaskGroup { group in
            for _ in 0..<8 {
                group.addTask {
                    for _ in 0..<2_000 { await Self.race() }
                }
            }
        }
    }

    private static func race() async {
        let spool = Spool(length: nil, sink: nil, isDetached: false, held: HeldBytes()) {}
        let readers = (0..<4).compactMap { _ in spool.makeReader() }
        let tasks = readers.map { reader in Task { try? await reader.next() } }
        // The readers may wait by now: if not, a race is missed.
        await Task.yield()
        let cancelling = Task { for task in tasks { task.cancel() } }
        await spool.append([1])
        await cancelling.value
        for task in tasks {
            let piece = await task.value
            #expect(piece == [1] || piece == nil)
        }
    }

    private static let content = (0..<400_000).map { UInt8(truncatingIfNeeded: $0 &* 31 ^ $0 >> 8) }

    private static func withSpool(_ body: (Spool, HeldBytes) async throws -> Void) async throws {
        try await withStore { store in
            let (writer, held) = (try store.writer(for: "k"), HeldBytes())
            let spool = Spool(length: nil, sink: .body(writer), isDetached: false, held: held) {}
            try await body(spool, held)
            writer.cancel()
        }
    }

    @Test func aReaderThatKeepsUpGetsWhatCameAndNotAFile() async throws {
        try await Self.withSpool { spool, held in
            let reader = try #require(spool.makeReader())
            for start in [0, 50_000, 100_000] {
                let piece = Array(Self.content[start..<start + 50_000])
                await spool.append(piece)
                #expect(held.count == Spool.fixedBytes + 50_000)
                try #expect(await reader.next() == piece)
                #expect(held.count == Spool.fixedBytes)
            }
        }
    }

    @Test func aReaderThatStallsTakesNoMemory() async throws {
        try await Self.withSpool { spool, held in
            let (stalled, leaving) = (try #require(spool.makeReader()), spool.makeReader())
            await spool.append(Array(Self.content[..<50_000]))
            #expect(held.count == Spool.fixedBytes + 50_000)
            await spool.append(Array(Self.content[50_000..<100_000]))
            #expect(held.count == Spool.fixedBytes)
            withExtendedLifetime(leaving) {}
            spool.finish(.success(()))
            #expect(held.count == 0)
            try #expect(await stalled.next() == Array(Self.content[..<65_536]))
        }
    }

    @Test func thePieceOfAReaderThatLeavesIsLetGo() async throws {
        try await Self.withSpool { spool, held in
            var leaving = spool.makeReader()
            let staying = try #require(spool.makeReader(10..<20))
            try #require(leaving != nil)
            await spool.append(Array(Self.content[..<50_000]))
            #expect(held.count == Spool.fixedBytes + 50_000)
            leaving = nil
            #expect(held.count == Spool.fixedBytes)
            try #expect(await staying.next() == Array(Self.content[10..<20]))
        }
    }

    @Test func aLongPieceIsNotHeld() async throws {
        try await Self.withSpool { spool, held in
            let reader = try #require(spool.makeReader())
            await spool.append(Self.content)
            #expect(held.count == Spool.fixedBytes)
            try #expect(await reader.next() == Array(Self.content[..<65_536]))
        }
    }

    @Test func whatIsNotShownIsNotTheLatestPiece() async throws {
        try await Self.withSpool { spool, _ in
            let reader = try #require(spool.makeReader())
            await spool.append(Array(Self.content[..<50_000]))
            await spool.append(Array(Self.content[50_000..<110_000]), isShown: false)
            try #expect(await reader.next() == Array(Self.content[..<50_000]))
            let waiting = Task { try await reader.next() }
            await Task.yield()
            spool.show()
            try #expect(await waiting.value == Array(Self.content[50_000..<110_000]))
        }
    }

    /// Readers that keep up, that lag, and of any range, beside a load.
    @Test(arguments: 0..<20) func everyReaderGetsItsRange(_ round: Int) async throws {
        try await Self.withSpool { spool, _ in
            let cuts = ([0, Self.content.count] + (0..<10).map { _ in Int.random(in: 0...Self.content.count) }).sorted()
            let readers = try (0..<6).map { number -> (Range<Int64>, SpoolReader) in
                let (one, other) = (Int64.random(in: 0..<400_000), Int64.random(in: 0..<400_000))
                let range = number == 0 ? 0..<400_000 : min(one, other)..<max(one, other) + 1
                return (range, try #require(spool.makeReader(range)))
            }
            try await withThrowingTaskGroup { group in
                for (range, reader) in readers {
                    group.addTask {
                        var bytes: [UInt8] = []
                        while let piece = try await reader.next() {
                            bytes += piece
                            if Bool.random() { await Task.yield() }
                        }
                        #expect(bytes == Array(Self.content[Int(range.lowerBound)..<Int(range.upperBound)]))
                    }
                }
                for (start, end) in zip(cuts, cuts.dropFirst()) where start < end {
                    await spool.append(Array(Self.content[start..<end]), isShown: Bool.random())
                    if Bool.random() { await Task.yield() }
                }
                spool.finish(.success(()))
                try await group.waitForAll()
            }
        }
    }
}
