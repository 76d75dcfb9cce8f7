import TestSupport
import Testing

@testable import Larder

struct PartialWriterTests {
    private let bytes = body(300_000)

    private func part(_ range: Range<Int>) -> ArraySlice<UInt8> { bytes[range] }

    @Test func whatIsWrittenInOrderIsStored() throws {
        try withStore { store in
            let writer = try store.partialWriter(for: "k", PutOptions(metadata: [1]), total: ByteCount(bytes.count))
            for start in stride(from: 0, to: bytes.count, by: 70_000) {
                try writer.write(part(start..<min(start + 70_000, bytes.count)), at: Int64(start))
            }
            #expect(writer.ranges == [0..<300_000] && writer.isComplete)
            try #expect(writer.commit() == Digest.of(bytes))
            try #expect(store.bytes("k") == bytes)
            try #expect(store.get("k")?.metadata == [1])
            try #expect(store.partialBody(of: "k") == nil)
            try expectNothingReserved(store)
            try #expect(code { try writer.write([1], at: 0) } == .closed)
            try #expect(code { try writer.commit() } == .closed)
            try store.put(bytes, for: "same")
            try store.flush()
            try #expect(store.statistics().blobCount == 1)
        }
    }

    /// Sizes on both sides of the inline threshold; ranges from the end, overlapping.
    @Test(arguments: [1, 4096, 4097, 100_000])
    func rangesMayComeInAnyOrderAndOverlap(_ length: Int) throws {
        try withStore { store in
            let bytes = body(length)
            let writer = try store.partialWriter(for: "k")
            var end = length
            while end > 0 {
                let start = max(0, end - 9000)
                try writer.write(bytes[start..<min(length, end + 3000)], at: Int64(start))
                end = start
            }
            try #expect(writer.commit() == Digest.of(bytes))
            try #expect(store.bytes("k") == bytes)
            try #expect(store.statistics().fileCount == (length > 4096 ? 1 : 0))
        }
    }

    /// What is there stays: readers may have it already.
    @Test func bytesThatAreThereAreNotWrittenAgain() throws {
        try withStore { store in
            let writer = try store.partialWriter(for: "k", total: 30_000)
            try writer.write(part(10_000..<20_000), at: 10_000)
            try writer.write([UInt8](repeating: 9, count: 30_000), at: 0)
            let nine = [UInt8](repeating: 9, count: 10_000)
            try writer.commit()
            try #expect(store.bytes("k") == nine + Array(part(10_000..<20_000)) + nine)
        }
    }

    @Test func nothingSeesItBeforeTheCommit() throws {
        try withStore { store in
            let writer = try store.partialWriter(for: "k", PutOptions(tags: ["t"], isPinned: true), total: 300_000)
            try writer.write(part(0..<200_000), at: 0)
            let digest = Digest.of(bytes)
            try #expect(store.get("k") == nil)
            try #expect(store.get(["k"]).allSatisfy { $0 == nil })
            try #expect(!store.contains("k") && store.withBody(of: "k", { _ in true }) == nil)
            try #expect(store.attributes(of: "k") == nil)
            try #expect(store.keys().isEmpty && store.keys(.tag("t")).isEmpty && store.keys(.pinned).isEmpty)
            try #expect(store.missing(of: [digest]) == [digest])
            let listed = try store.keys(.incomplete)
            #expect(listed == ["k"])
            try #expect(store.keys(.all || .incomplete) == ["k"] && store.keys(.all && !.incomplete) == [])
            var random: Digest?
            try store.forEach(.incomplete) { attributes in
                #expect(attributes.encoding == .partial && attributes.length == 300_000)
                random = attributes.digest
            }
            let hidden = try #require(random)
            try #expect(store.body(digest: hidden) == nil && !store.contains(digest: hidden))
            var batch = WriteBatch()
            batch.put([1], for: "k", unlessPresent: true)
            try store.write(batch)
            try #expect(store.bytes("k") == [1])
            try writer.write(part(200_000..<300_000), at: 200_000)
            try #expect(code { try writer.commit() } == .gone)
        }
    }

    @Test func aLaterWriterTakesOverWhatIsThere() throws {
        try withStore { store in
            let first = try store.partialWriter(for: "k", PutOptions(metadata: [1]), total: 300_000)
            try first.write(part(0..<50_000), at: 0)
            try first.write(part(100_000..<150_000), at: 100_000)
            try first.use(PutOptions(metadata: [1, 2]))
            try first.suspend()
            try #expect(code { try first.write([1], at: 0) } == .closed)
            try verify(store)
            let body = try #require(try store.partialBody(of: "k"))
            #expect(!body.isBeingWritten && body.total == 300_000 && body.metadata == [1, 2])
            #expect(body.ranges == [0..<50_000, 100_000..<150_000])
            let second = try store.partialWriter(for: "k", PutOptions(tags: ["t"], metadata: [7]))
            #expect(second.ranges == [0..<50_000, 100_000..<150_000] && second.total == 300_000)
            #expect(second.metadata == [1, 2])
            try second.write(part(150_000..<300_000), at: 150_000)
            try second.write(part(40_000..<110_000), at: 40_000)
            try #expect(second.commit() == Digest.of(bytes))
            try #expect(store.bytes("k") == bytes)
            try #expect(store.get("k")?.metadata == [1, 2] && store.keys(.tag("t")) == ["k"])
            // It stays readable.
            try #expect(body.bytes(in: 100_000..<300_000) == Array(part(100_000..<150_000)))
            try #expect(body.bytes(in: 60_000..<70_000).isEmpty)
            try body.withFileRange(in: 10..<60_000) { descriptor, range in
                #expect(range == 10..<50_000)
                let read = try [UInt8](unsafeUninitializedCapacity: 100) { buffer, count in
                    count = try descriptor.read(fromAbsoluteOffset: 10, into: UnsafeMutableRawBufferPointer(buffer))
                }
                #expect(read == Array(part(10..<110)))
            }
        }
    }

    /// Without a flush, and without another call of the writer.
    @Test func theIndexHearsOfARangeSoon() async throws {
        try await withStore { store in
            let writer = try await store.perform { try $0.partialWriter(for: "k") }
            try await writer.write(part(0..<50_000), at: 0)
            let index = store.engine.index
            try await waitWhile {
                try store.engine.read { transaction in
                    let record = try transaction.get(index.entries, Array("k".utf8)).flatMap { EntryRecord($0) }
                    return record?.progress?.ranges.list != [0..<50_000]
                }
            }
            try await writer.commit()
        }
    }

    @Test func versionsDoNotSeeEachOthersBodies() throws {
        try withStore(configuration: .testing { $0.version = "1" }) { store in
            let other = try Store(at: store.path, .testing { $0.version = "2" })
            let writer = try store.partialWriter(for: "k")
            try writer.write(part(0..<50_000), at: 0)
            try #expect(other.partialBody(of: "k") == nil)
            try writer.suspend()
            try #expect(store.partialBody(of: "k") != nil && other.keys(.incomplete).isEmpty)
            let second = try other.partialWriter(for: "k")
            #expect(second.ranges.isEmpty)
            try second.write(part(0..<50_000), at: 0)
            try second.commit()
            try #expect(other.bytes("k") == Array(part(0..<50_000)) && store.bytes("k") == nil)
            try #expect(store.partialBody(of: "k") == nil)
            try other.close()
        }
    }

    @Test func aWriterThatIsDroppedLeavesItsBody() throws {
        try withStore { store in
            do {
                let writer = try store.partialWriter(for: "k")
                try writer.write(part(0..<50_000), at: 0)
            }
            try store.flush()
            try #expect(store.partialBody(of: "k")?.isBeingWritten == false)
            try #expect(store.partialWriter(for: "k").ranges == [0..<50_000])
        }
    }

    /// Both in one transaction: what the one leaves the other takes over.
    @Test func aBodyIsTakenOverBeforeTheIndexHasHeardThatItWasLeft() throws {
        try withStore(configuration: .holding) { store in
            for number in 0..<Int64(5) {
                let writer = try store.partialWriter(for: "k", total: 300_000)
                #expect(writer.ranges == (number == 0 ? [] : [0..<number * 60_000]))
                try writer.write(part(Int(number) * 60_000..<Int(number + 1) * 60_000), at: number * 60_000)
            }
            try store.partialWriter(for: "k").commit()
            try #expect(store.bytes("k") == bytes)
        }
    }

    @Test func aStoreThatClosesSuspendsItsWriters() throws {
        try withDirectory { path in
            let store = try Store(at: path, .testing())
            let writer = try store.partialWriter(for: "k", total: 300_000)
            try writer.write(part(0..<50_000), at: 0)
            try store.close()
            try #expect(code { try writer.write([1], at: 50_000) } == .closed)
            try #expect(code { try writer.commit() } == .closed)
            writer.cancel()
            let again = try Store(at: path, .testing())
            let next = try again.partialWriter(for: "k")
            #expect(next.ranges == [0..<50_000])
            try next.write(part(50_000..<300_000), at: 50_000)
            try next.commit()
            try #expect(again.bytes("k") == bytes)
            try finish(again)
        }
    }

    @Test func oneWriterAtATime() throws {
        try withStore { store in
            let writer = try store.partialWriter(for: "k")
            try #expect(code { try store.partialWriter(for: "k") } == .locked)
            let other = try Store(at: store.path, .testing())
            try #expect(code { try other.partialWriter(for: "k") } == .locked)
            try other.close()
            writer.cancel()
            try #expect(store.partialBody(of: "k") == nil)
            try store.partialWriter(for: "k").cancel()
            try #expect(store.keys(.incomplete).isEmpty && store.stagedFiles.isEmpty)
            try expectNothingReserved(store)
        }
    }

    @Test func aBodyOfAnotherLengthIsNotTakenOver() throws {
        try withStore { store in
            var writer = try store.partialWriter(for: "k", total: 300_000)
            try writer.write(part(0..<50_000), at: 0)
            try writer.suspend()
            writer = try store.partialWriter(for: "k", PutOptions(metadata: [2]), total: 200_000)
            #expect(writer.ranges.isEmpty && writer.total == 200_000 && writer.metadata == [2])
            writer.cancel()
            writer = try store.partialWriter(for: "k")
            try writer.write(part(0..<50_000), at: 0)
            try writer.suspend()
            writer = try store.partialWriter(for: "k", total: 60_000)
            #expect(writer.ranges == [0..<50_000] && writer.total == 60_000)
            try verify(store)
            try writer.suspend()
            try verify(store)
        }
    }

    // MARK: Refused

    @Test func whatCannotBeAPartIsRefusedAndTheWriterGoesOn() throws {
        try withStore(configuration: .testing(budget: Budget(largestEntry: 100_000))) { store in
            try #expect(code { try store.partialWriter(for: "k", total: 100_001) } == .tooLarge)
            try #expect(
                code { try store.partialWriter(for: "k", PutOptions(storagePolicy: .memoryOnly)) } == .invalidArgument)
            let writer = try store.partialWriter(for: "k")
            try #expect(code { try writer.write([1], at: 100_000) } == .tooLarge)
            try #expect(code { try writer.write([1], at: -1) } == .invalidArgument)
            try #expect(code { try writer.write([1], at: .max) } == .invalidArgument)
            try writer.write(part(1..<10_000), at: 1)
            try #expect(code { try writer.commit() } == .incomplete)
            try writer.write(part(0..<1), at: 0)
            try writer.commit()
            try #expect(store.bytes("k") == Array(part(0..<10_000)))
            let short = try store.partialWriter(for: "s", total: 10)
            try #expect(code { try short.write(body(11), at: 0) } == .lengthMismatch)
            try short.write(body(10), at: 0)
            try short.commit()
        }
    }

    @Test func moreRangesThanARecordHoldsAreRefused() throws {
        try withStore { store in
            let writer = try store.partialWriter(for: "k")
            for number in 0..<Int64(1024) { try writer.write([1], at: number * 2) }
            try #expect(code { try writer.write([1], at: 5000) } == .tooLarge)
            try writer.suspend()
            let next = try store.partialWriter(for: "k")
            #expect(next.ranges.count == 1024)
            try next.write([UInt8](repeating: 1, count: 2047), at: 0)
            #expect(next.ranges == [0..<2047])
            try next.commit()
            try #expect(store.bytes("k") == [UInt8](repeating: 1, count: 2047))
        }
    }

    @Test func aWrongDigestRemovesTheBody() throws {
        try withStore { store in
            let writer = try store.partialWriter(for: "k", digest: Digest.of([1]))
            try writer.write(part(0..<50_000), at: 0)
            try #expect(code { try writer.commit() } == .digestMismatch)
            try #expect(store.partialBody(of: "k") == nil && store.get("k") == nil)
            let right = try store.partialWriter(for: "k", digest: Digest.of(bytes))
            try right.write(part(100_000..<300_000), at: 100_000)
            try right.write(part(0..<100_000), at: 0)
            try right.commit()
            try #expect(store.bytes("k") == bytes)
        }
    }

    @Test func readOnlyAndClosedStoresRefuse() throws {
        try withDirectory { path in
            let store = try Store(at: path, .testing())
            let writer = try store.partialWriter(for: "k")
            try writer.write(part(0..<50_000), at: 0)
            try writer.suspend()
            try store.close()
            try #expect(code { try store.partialWriter(for: "k") } == .closed)
            try #expect(code { try store.partialBody(of: "k") } == .closed)
            let reader = try Store(at: path, .testing { $0.isReadOnly = true })
            try #expect(code { try reader.partialWriter(for: "k") } == .readOnly)
            try #expect(reader.partialBody(of: "k")?.bytes(in: 0..<60_000) == Array(part(0..<50_000)))
            try reader.close()
        }
    }

    // MARK: Sharing

    @Test(arguments: [3000, 100_000])
    func aBodyThatIsThereAlreadyIsShared(_ length: Int) throws {
        try withStore { store in
            try store.put(body(length), for: "first")
            try store.flush()
            let writer = try store.partialWriter(for: "k")
            try writer.write(body(length), at: 0)
            try writer.commit()
            try #expect(store.bytes("k") == body(length))
            try #expect(store.statistics().blobCount == 1 && store.statistics().transientBytes == .zero)
            try expectNothingReserved(store)
        }
    }

    @Test func anEntryThatIsOverwrittenKeepsItsPinAndItsAge() throws {
        try withStore { store in
            try store.put([1], for: "k", PutOptions(isPinned: true))
            try store.flush()
            let created = try #require(try store.attributes(of: "k")).created
            let writer = try store.partialWriter(for: "k")
            try #expect(store.get("k") == nil)
            try writer.write(bytes, at: 0)
            try writer.commit()
            let attributes = try #require(try store.attributes(of: "k"))
            #expect(attributes.isPinned && attributes.created == created)
        }
    }

    @Test func durableCommitsSurvive() throws {
        try withPowerLoss(
            .testing(),
            of: { store in
                let writer = try store.partialWriter(for: "k", PutOptions(durability: .durable))
                try writer.write(bytes, at: 0)
                try writer.commit()
            }
        ) { path in
            let store = try Store(at: path, .testing())
            try #expect(store.bytes("k") == bytes)
            try finish(store)
        }
    }
}
