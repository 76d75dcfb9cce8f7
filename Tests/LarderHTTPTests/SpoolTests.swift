import Dispatch
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

    private static func withSpool(_ body: (Spool, HeldBytes, BodyWriter) async throws -> Void) async throws {
        try await withStore { store in
            let (writer, held) = (try store.writer(for: "k"), HeldBytes())
            let spool = Spool(length: nil, sink: .body(writer), isDetached: false, held: held) {}
            try await body(spool, held, writer)
            writer.cancel()
        }
    }

    /// A part of `content` that is too short to come fast.
    private static func slowPiece(_ start: Int) -> [UInt8] { Array(content[start..<start + 20_000]) }

    /// As long as the pieces of a transport get.
    private static func fastPiece(_ number: Int) -> [UInt8] {
        (0..<65_536).map { UInt8(truncatingIfNeeded: $0 &* 7 ^ number) }
    }

    @Test func aReaderThatKeepsUpGetsWhatCameAndNotAFile() async throws {
        try await Self.withSpool { spool, held, _ in
            let reader = try #require(spool.makeReader())
            for start in [0, 20_000, 40_000] {
                await spool.append(Self.slowPiece(start))
                #expect(held.count == Spool.fixedBytes + 20_000)
                try #expect(await reader.next() == Self.slowPiece(start))
                #expect(held.count == Spool.fixedBytes)
            }
        }
    }

    @Test func piecesThatComeFastAreWrittenTogether() async throws {
        try await Self.withSpool { spool, held, writer in
            let (reader, stalled) = (try #require(spool.makeReader()), try #require(spool.makeReader()))
            for number in 0..<3 {
                await spool.append(Self.fastPiece(number))
                try #expect(await reader.next() == Self.fastPiece(number))
                #expect(held.count == Spool.fixedBytes + (number + 1) * 65_536)
                try #expect(await writer.bytes(in: 0..<400_000).isEmpty)
            }
            await spool.append(Self.fastPiece(3))
            try #expect(await writer.bytes(in: 0..<400_000).count == 4 * 65_536)
            try #expect(await reader.next() == Self.fastPiece(3))
            // For the one that stalls.
            #expect(held.count == Spool.fixedBytes + 4 * 65_536)
            await spool.append([1])
            #expect(held.count == Spool.fixedBytes + 1)
            for number in 0..<4 { try #expect(await stalled.next() == Self.fastPiece(number)) }
            for reader in [reader, stalled] { try #expect(await reader.next() == [1]) }
        }
    }

    @Test func aPieceThatComesSlowlyTakesThoseBeforeItAlong() async throws {
        try await Self.withSpool { spool, held, writer in
            await spool.append(Self.fastPiece(0))
            #expect(held.count == Spool.fixedBytes + 65_536)
            await spool.append(Self.slowPiece(0))
            #expect(held.count == Spool.fixedBytes)
            try #expect(await writer.bytes(in: 0..<400_000) == Self.fastPiece(0) + Self.slowPiece(0))
        }
    }

    @Test func whatWaitsIsWrittenAtTheEnd() async throws {
        try await Self.withSpool { spool, held, writer in
            await spool.append(Self.fastPiece(0))
            #expect(await spool.writeOut())
            #expect(await spool.writeOut())
            #expect(held.count == Spool.fixedBytes)
            try #expect(await writer.bytes(in: 0..<400_000) == Self.fastPiece(0))
        }
    }

    /// Or else a purge by another process, which a client asks for that has got the first bytes, would miss them.
    @Test func readersGetOfAPartWhatIsWritten() async throws {
        try await withStore { store in
            let (isOpening, mayOpen) = (Latch(), DispatchSemaphore(value: 0))
            let sink = PartSink(store, 0..<10) {
                isOpening.open()
                mayOpen.wait()
                throw MissingContent()
            }
            let spool = Spool(length: 10, sink: .part(sink), isDetached: false, held: HeldBytes()) {}
            let reader = try #require(spool.makeReader())
            let appending = Task { await spool.append([1, 2, 3]) }
            await isOpening.wait()
            let isRead = Counter()
            let reading = Task {
                let piece = try await reader.next()
                isRead.increment()
                return piece
            }
            for _ in 0..<1_000 { await Task.yield() }
            #expect(isRead.value == 0)
            mayOpen.signal()
            try #expect(await reading.value == [1, 2, 3])
            await appending.value
        }
    }

    /// The store fails after some of it was written.
    @Test func readersGetWhatTheStoreDidNotTake() async throws {
        try await Self.withSpool { spool, _, writer in
            let (reader, late) = (try #require(spool.makeReader()), try #require(spool.makeReader()))
            for number in 0..<6 {
                await spool.append(Self.fastPiece(number))
                try #expect(await reader.next() == Self.fastPiece(number))
            }
            writer.cancel()
            #expect(await !spool.writeOut())
            #expect(spool.storingFailure != nil && spool.makeReader() == nil)
            let appending = Task { await spool.append(Self.fastPiece(6)) }
            for number in 0..<7 { try #expect(await late.next() == Self.fastPiece(number)) }
            try #expect(await reader.next() == Self.fastPiece(6))
            await appending.value
            spool.finish(.success(()))
            try #expect(await reader.next() == nil)
        }
    }

    @Test func aReaderThatStallsTakesNoMemory() async throws {
        try await Self.withSpool { spool, held, _ in
            let (stalled, leaving) = (try #require(spool.makeReader()), spool.makeReader())
            for start in stride(from: 0, to: 320_000, by: 20_000) {
                await spool.append(Self.slowPiece(start))
                #expect(held.count <= Spool.fixedBytes + Spool.batchBytes)
            }
            #expect(held.count == Spool.fixedBytes)
            withExtendedLifetime(leaving) {}
            spool.finish(.success(()))
            #expect(held.count == 0)
            try #expect(await stalled.next() == Array(Self.content[..<65_536]))
        }
    }

    @Test func theEndLeavesNothingInMemory() async throws {
        try await Self.withSpool { spool, held, _ in
            let stalled = try #require(spool.makeReader())
            await spool.append(Self.slowPiece(0))
            #expect(held.count == Spool.fixedBytes + 20_000)
            spool.finish(.success(()))
            #expect(held.count == 0)
            try #expect(await stalled.next() == Self.slowPiece(0))
        }
    }

    @Test func thePieceOfAReaderThatLeavesIsLetGo() async throws {
        try await Self.withSpool { spool, held, _ in
            var leaving = spool.makeReader()
            let staying = try #require(spool.makeReader(10..<20))
            try #require(leaving != nil)
            await spool.append(Self.slowPiece(0))
            #expect(held.count == Spool.fixedBytes + 20_000)
            leaving = nil
            #expect(held.count == Spool.fixedBytes)
            try #expect(await staying.next() == Array(Self.content[10..<20]))
        }
    }

    @Test func ofALongPieceReadersGetParts() async throws {
        try await Self.withSpool { spool, held, _ in
            let reader = try #require(spool.makeReader())
            let waiting = Task { try await reader.next() }
            await Task.yield()
            await spool.append(Self.content)
            #expect(held.count <= Spool.fixedBytes + Spool.batchBytes)
            try #expect(await waiting.value == Array(Self.content[..<65_536]))
            try #expect(await reader.next() == Array(Self.content[65_536..<131_072]))
            await spool.append([1])
            #expect(held.count == Spool.fixedBytes)
        }
    }

    /// Each has a cost of its own, and readers walk through them.
    @Test func fewPiecesAreKeptForAReader() async throws {
        try await Self.withSpool { spool, held, _ in
            let stalled = try #require(spool.makeReader())
            await spool.append(Self.slowPiece(0))
            for _ in 0..<15 { await spool.append([1]) }
            #expect(held.count == Spool.fixedBytes + 20_015)
            await spool.append([1])
            #expect(held.count == Spool.fixedBytes)
            try #expect(await stalled.next() == Self.slowPiece(0) + [UInt8](repeating: 1, count: 16))
        }
    }

    @Test func nothingIsKeptForAReaderThatHasItsRange() async throws {
        try await Self.withSpool { spool, held, _ in
            let reader = try #require(spool.makeReader(0..<20_000))
            await spool.append(Self.slowPiece(0))
            try #expect(await reader.next() == Self.slowPiece(0))
            await spool.append(Self.slowPiece(20_000))
            #expect(held.count == Spool.fixedBytes)
            try #expect(await reader.next() == nil)
        }
    }

    @Test func whatIsNotShownIsNotRead() async throws {
        try await Self.withSpool { spool, _, _ in
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
        try await Self.withSpool { spool, _, _ in
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
                if Bool.random() { #expect(await spool.writeOut()) }
                spool.finish(.success(()))
                try await group.waitForAll()
            }
        }
    }
}
