import TestSupport
import Testing

@testable import Larder

@Suite struct BodyWriterTests {
    /// Around the inline threshold of 4 KiB, in pieces that do and do not divide it.
    @Test(arguments: [0, 1, 4095, 4096, 4097, 300_000], [1000, 4096, 100_000])
    func whatIsWrittenInPiecesIsStoredWhole(_ length: Int, _ piece: Int) throws {
        try withStore { store in
            let bytes = body(length)
            for declared in [nil, ByteCount(length)] {
                let writer = try store.writer(for: "k", PutOptions(metadata: [1]), length: declared)
                for start in stride(from: 0, to: length, by: piece) {
                    try writer.write(Array(bytes[start..<min(start + piece, length)]))
                }
                try #expect(writer.commit() == Digest.of(bytes))
                try #expect(store.bytes("k") == bytes)
                try store.flush()
                try #expect(store.bytes("k") == bytes)
                try #expect(store.get("k")?.metadata == [1])
                try #expect(store.statistics().fileCount == (length > 4096 ? 1 : 0))
                try store.remove("k")
            }
        }
    }

    @Test func smallBodiesStayInMemoryAndLargeOnesSpill() throws {
        try withStore { store in
            let writer = try store.writer(for: "k")
            try writer.write(body(4096))
            #expect(store.stagedFiles == [])
            try writer.write([1])
            #expect(store.stagedFiles.count == 1)
            try writer.commit()
        }
    }

    /// Another program cuts the file while it is written: the rest is not made up of zeros.
    @Test(arguments: [0, 5_000, 99_999]) func aFileThatIsCutIsNotStored(_ length: Int64) throws {
        try withStore { store in
            let writer = try store.writer(for: "k")
            try writer.write(body(100_000))
            let name = try #require(store.stagedFiles.first)
            try TestFiles.truncate(store.path.appending("staging").appending(name), to: length)
            let error = #expect(throws: LarderError.self) { try writer.commit() }
            #expect(error?.code == .io)
            try #expect(store.get("k") == nil && store.stagedFiles == [])
            try store.put(body(100_000), for: "k")
            try #expect(store.bytes("k") == body(100_000))
        }
    }

    /// As above, but the writer continues: the file has its length again, with zeros inside.
    @Test(arguments: [0, 5_000, 99_999]) func aFileThatIsCutAndWrittenOnIsNotStored(_ length: Int64) throws {
        try withStore { store in
            let writer = try store.writer(for: "k")
            try writer.write(body(100_000))
            let name = try #require(store.stagedFiles.first)
            try TestFiles.truncate(store.path.appending("staging").appending(name), to: length)
            try #expect(code { try writer.write(body(50_000)) } == .io)
            try #expect(code { try writer.commit() } == .closed)
            try #expect(store.get("k") == nil && store.stagedFiles == [])
        }
    }

    /// Another program adds bytes, which the body does not get.
    @Test func aFileThatIsMadeLongerIsCutToTheBody() throws {
        try withStore { store in
            let writer = try store.writer(for: "k")
            try writer.write(body(100_000))
            let name = try #require(store.stagedFiles.first)
            try TestFiles.truncate(store.path.appending("staging").appending(name), to: 5_000_000)
            try writer.commit()
            try #expect(store.bytes("k") == body(100_000))
        }
    }

    /// Without a name there is nothing to publish: the put must not look like a success.
    @Test func aFileWhoseNameIsRemovedIsNotStored() throws {
        try withStore { store in
            let writer = try store.writer(for: "k")
            try writer.write(body(100_000))
            let name = try #require(store.stagedFiles.first)
            TestFiles.remove(store.path.appending("staging").appending(name))
            try #expect(code { try writer.commit() } == .io)
            try #expect(store.get("k") == nil)
            try store.put(body(100_000), for: "k")
            try #expect(store.bytes("k") == body(100_000))
        }
    }

    @Test func nothingIsVisibleBeforeTheCommit() throws {
        try withStore { store in
            try store.put([1], for: "k")
            let writer = try store.writer(for: "k")
            try writer.write(body(9000))
            try #expect(store.bytes("k") == [1])
            try writer.commit()
            try #expect(store.bytes("k") == body(9000))
        }
    }

    @Test(arguments: [10, 9000])
    func moreThanDeclaredIsRefusedAndCancelsTheWriter(_ length: Int) throws {
        try withStore { store in
            let writer = try store.writer(for: "k", length: ByteCount(length))
            try writer.write(body(length))
            try #expect(code { try writer.write([1]) } == .lengthMismatch)
            try #expect(code { try writer.commit() } == .closed)
            try expectNothing(store)
        }
    }

    @Test(arguments: [10, 9000])
    func lessThanDeclaredIsRefusedAtCommit(_ length: Int) throws {
        try withStore { store in
            let writer = try store.writer(for: "k", length: ByteCount(length))
            try writer.write(body(length - 1))
            try #expect(code { try writer.commit() } == .lengthMismatch)
            try expectNothing(store)
        }
    }

    @Test(arguments: [10, 9000])
    func aDigestThatDoesNotMatchIsRefusedAtCommit(_ length: Int) throws {
        try withStore { store in
            let bad = try store.writer(for: "k", digest: Digest.of([1]))
            try bad.write(body(length))
            try #expect(code { try bad.commit() } == .digestMismatch)
            try expectNothing(store)
            let good = try store.writer(for: "k", digest: Digest.of(body(length)))
            try good.write(body(length))
            try good.commit()
            try #expect(store.bytes("k") == body(length))
        }
    }

    @Test func cancelLeavesNothingAndEndsTheWriter() throws {
        try withStore { store in
            let writer = try store.writer(for: "k", length: .mebibytes(1))
            try writer.write(body(9000))
            writer.cancel()
            writer.cancel()
            try expectNothing(store)
            try #expect(code { try writer.write([1]) } == .closed)
            try #expect(code { try writer.commit() } == .closed)
        }
    }

    @Test func aWriterThatGoesLeavesNothing() throws {
        try withStore { store in
            do {
                let writer = try store.writer(for: "k")
                try writer.write(body(9000))
                #expect(store.stagedFiles.count == 1)
            }
            try expectNothing(store)
        }
    }

    @Test func cancelAfterCommitHasNoEffect() throws {
        try withStore(configuration: .holding) { store in
            let writer = try store.writer(for: "k")
            try writer.write(body(9000))
            try writer.commit()
            writer.cancel()
            try #expect(code { try writer.commit() } == .closed)
            try #expect(store.bytes("k") == body(9000))
        }
    }

    @Test func aBodyOverTheBudgetIsRefusedWhileItStreams() throws {
        try withStore(configuration: .testing(budget: Budget(bytes: .mebibytes(2)))) { store in
            try #expect(code { try store.writer(for: "k", length: .mebibytes(2)) } == .tooLarge)
            let writer = try store.writer(for: "k")
            var written = 0
            let refused = try code {
                while written < 4 << 20 {
                    try writer.write(body(100_000, written))
                    written += 100_000
                }
            }
            #expect(refused == .tooLarge || refused == .noSpace)
            #expect(written < 2 << 20)
            try expectNothing(store)
            try store.put(body(100_000), for: "k")
            try #expect(store.bytes("k") == body(100_000))
        }
    }

    @Test func aBodyOverTheLargestEntryIsRefusedWhileItStreams() throws {
        try withStore(configuration: .testing(budget: Budget(largestEntry: 10_000))) { store in
            try #expect(code { try store.writer(for: "k", length: 10_001) } == .tooLarge)
            let writer = try store.writer(for: "k")
            try writer.write(body(10_000))
            try #expect(code { try writer.write([1]) } == .tooLarge)
            try expectNothing(store)
            let fits = try store.writer(for: "k", length: 10_000)
            try fits.write(body(10_000))
            try fits.commit()
            try #expect(store.bytes("k")?.count == 10_000)
        }
    }

    @Test func aWriterDisplacesToMakeRoom() throws {
        let budget = Budget(bytes: .mebibytes(2), largestEntry: .mebibytes(1))
        try withStore(configuration: .testing(budget: budget)) { store in
            for number in 0..<40 { try store.put(body(30_000, number), for: Key("old\(number)")) }
            let writer = try store.writer(for: "new")
            for piece in 0..<10 { try writer.write(body(100_000, piece)) }
            try writer.commit()
            try #expect(store.get("new")?.body.length == 1_000_000)
            try #expect(store.statistics().displacedCount > 0)
            #expect(recount(store.path) <= 2 << 20)
        }
    }

    @Test func twoWritersOfOneKeyBothCommitAndTheLastWins() throws {
        try withStore { store in
            let first = try store.writer(for: "k")
            let second = try store.writer(for: "k")
            try first.write(body(9000, 1))
            try second.write(body(9000, 2))
            try second.commit()
            try first.commit()
            try #expect(store.bytes("k") == body(9000, 1))
            try #expect(store.statistics().blobCount == 1)
        }
    }

    @Test func aWriterIsRefusedAfterTheStoreIsClosedAndLeavesNothing() throws {
        try withDirectory { path in
            let store = try Store(at: path, .testing())
            let writer = try store.writer(for: "k")
            try writer.write(body(9000))
            try store.close()
            try #expect(code { try writer.write([1]) } == .closed)
            #expect(store.stagedFiles == [])
            let again = try Store(at: path, .testing())
            try expectNothing(again)
            try finish(again)
        }
    }

    private func expectNothing(_ store: Store) throws {
        #expect(store.stagedFiles == [])
        try #expect(store.get("k") == nil)
        try #expect(store.statistics().transientBytes == .zero)
        #expect(store.engine.writing?.ledger.own == 0)
    }
}
