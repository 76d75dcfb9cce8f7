import Crypto
import SeededData
import SystemPackage
import TestSupport
import Testing

@testable import Larder

/// Encrypted files, beside a model in memory.
@Suite struct BodySealTests {
    private let cipher = StoreCipher(SymmetricKey(data: [UInt8](repeating: 1, count: 32)))

    private func withFile(_ body: (OwnedDescriptor) throws -> Void) throws {
        try withDirectory { directory in
            try body(FileSystem.open(path: directory.appending("file"), flags: O_RDWR | O_CREAT))
        }
    }

    private func read(_ seal: BodySeal, _ file: OwnedDescriptor, _ range: Range<Int>, _ length: Int?) throws -> [UInt8]
    {
        try [UInt8](unsafeUninitializedCapacity: range.count) { buffer, count in
            count = try seal.read(
                file, into: UnsafeMutableRawBufferPointer(UnsafeMutableBufferPointer(rebasing: buffer[..<range.count])),
                at: Int64(range.lowerBound), length: length.map { Int64($0) })
        }
    }

    @Test(arguments: [0, 1, 16_383, 16_384, 16_385, 300_000]) func rangesAreReadAlone(_ length: Int) throws {
        try withFile { file in
            let bytes = body(length, 3)
            let seal = BodySeal(cipher)
            try seal.begin(file)
            try bytes.withUnsafeBytes { try seal.write(file, $0, at: 0) }
            try seal.finish(file, Digest.of(bytes), length: Int64(length), .identity)
            try #expect(FileSystem.status(file, path: nil).size == BodySeal.fileLength(Int64(length)))
            var head = BlobRecord(digest: Digest.of(bytes))
            head.storedLength = UInt64(length)
            let again = try BodySeal.open(file, cipher, head)
            var generator = SeededGenerator(seed: UInt64(length))
            for _ in 0..<50 {
                let start = Int.random(in: 0...length, using: &generator)
                let end = Int.random(in: start...length, using: &generator)
                try #expect(read(again, file, start..<end, length) == Array(bytes[start..<end]))
            }
            try #expect(read(again, file, 0..<length + 10, length) == bytes)
            // Another body, another length, another form, another store.
            var other = head
            other.digest = Digest.of([1])
            #expect(throws: SealDamage.self) { try BodySeal.open(file, cipher, other) }
            other = head
            other.storedLength += 1
            #expect(throws: SealDamage.self) { try BodySeal.open(file, cipher, other) }
            other = head
            other.encoding = .gzip
            #expect(throws: SealDamage.self) { try BodySeal.open(file, cipher, other) }
            let foreign = StoreCipher(SymmetricKey(data: [UInt8](repeating: 2, count: 32)))
            #expect(throws: SealDamage.self) { try BodySeal.open(file, foreign, head) }
        }
    }

    /// Pieces in any order, with gaps, by several writers one after the other. What the index may name can be read by
    /// those who have the file only, and is never written again.
    @Test(arguments: 0..<20 as Range<UInt64>) func anyOrderOfWritesIsThatOfAFile(_ seed: UInt64) throws {
        try withFile { file in
            var generator = SeededGenerator(seed: seed)
            let length = Int.random(in: 1...200_000, using: &generator)
            let total = Bool.random(using: &generator) ? Int64(length) : nil
            let bytes = body(length, Int(seed))
            var ranges = StoredRanges()
            var head = BlobRecord(digest: Digest.of([UInt8(seed)]))
            head.encoding = .partial
            var seal = BodySeal(cipher)
            try seal.begin(file, partial: head.digest)
            func write(_ range: Range<Int64>) throws {
                for gap in ranges.gaps(in: range) {
                    try bytes[Int(gap.lowerBound)..<Int(gap.upperBound)].withUnsafeBytes {
                        try seal.write(file, $0, at: gap.lowerBound, total: total)
                    }
                }
                ranges.insert(range)
            }
            func expect(_ ranges: StoredRanges, of seal: BodySeal) throws {
                for range in ranges.list {
                    let range = Int(range.lowerBound)..<Int(range.upperBound)
                    try #expect(read(seal, file, range, nil) == Array(bytes[range]))
                }
            }
            for _ in 0..<30 {
                let start = Int64.random(in: 0..<Int64(length), using: &generator)
                try write(start..<min(Int64(length), start + Int64.random(in: 1...30_000, using: &generator)))
                try expect(ranges, of: seal)
                let written = seal.written(ranges)
                #expect(written.list.allSatisfy { ranges.gaps(in: $0).isEmpty })
                try expect(written, of: try BodySeal.open(file, cipher, head))
                guard Int.random(in: 0..<5, using: &generator) == 0 else { continue }
                try seal.leave(file)
                let left = seal.written(ranges)
                try expect(left, of: try BodySeal.open(file, cipher, head))
                seal = try BodySeal.open(file, cipher, head)
                ranges = try seal.takeOver(file, left, total: total)
                #expect(ranges == left)
                #expect(seal.written(ranges) == BodySeal.fullChunks(ranges, total: total))
                try expect(ranges, of: seal)
            }
            try write(0..<Int64(length))
            try seal.finish(file, Digest.of(bytes), length: Int64(length), .identity)
            try FileSystem.truncate(file, to: BodySeal.fileLength(Int64(length)), path: nil)
            head = BlobRecord(digest: Digest.of(bytes))
            head.storedLength = UInt64(length)
            try #expect(read(BodySeal.open(file, cipher, head), file, 0..<length, length) == bytes)
        }
    }

    /// A chunk of an earlier time is not a part of a complete body: what was left of it is not whole.
    @Test func aRunOfAChunkIsNoChunk() throws {
        try withFile { file in
            let bytes = body(20_000)
            var head = BlobRecord(digest: Digest.of([1]))
            head.encoding = .partial
            let first = BodySeal(cipher)
            try first.begin(file, partial: head.digest)
            try bytes[100..<9_000].withUnsafeBytes { try first.write(file, $0, at: 100) }
            try first.leave(file)
            var slot = [UInt8](repeating: 0, count: 9_000)
            _ = try slot.withUnsafeMutableBytes {
                try FileSystem.read(file, into: $0, at: Int64(BodySeal.headLength), path: nil)
            }
            let second = try BodySeal.open(file, cipher, head)
            var ranges = StoredRanges()
            ranges.insert(100..<9_000)
            try #expect(second.takeOver(file, ranges, total: nil) == ranges)
            try bytes.withUnsafeBytes { try second.write(file, $0, at: 0) }
            try second.finish(file, Digest.of(bytes), length: 20_000, .identity)
            head = BlobRecord(digest: Digest.of(bytes))
            head.storedLength = 20_000
            try #expect(read(BodySeal.open(file, cipher, head), file, 0..<20_000, 20_000) == bytes)
            try slot.withUnsafeBytes {
                try FileSystem.write(file, $0, at: Int64(BodySeal.headLength), path: nil)
            }
            #expect(throws: SealDamage.self) { try read(BodySeal.open(file, cipher, head), file, 200..<300, 20_000) }
        }
    }

    /// A write that failed is made again, with the same bytes.
    @Test func nothingIsLostByAWriteThatIsRepeated() throws {
        try withFile { file in
            let bytes = body(50_000)
            let seal = BodySeal(cipher)
            try seal.begin(file)
            try bytes[..<5_000].withUnsafeBytes { try seal.write(file, $0, at: 0) }
            let closed = try FileSystem.open(path: "/dev/null", flags: O_RDONLY)
            for _ in 0..<3 {
                #expect(throws: LarderError.self) {
                    try bytes[5_000...].withUnsafeBytes { try seal.write(closed, $0, at: 5_000) }
                }
            }
            try bytes[5_000...].withUnsafeBytes { try seal.write(file, $0, at: 5_000) }
            try #expect(read(seal, file, 0..<50_000, nil) == bytes)
        }
    }

    @Test func noNonceComesTwice() throws {
        try withFile { file in
            var nonces: Set<[UInt8]> = []
            var head = BlobRecord(digest: Digest.of([1]))
            head.encoding = .partial
            var seal = BodySeal(cipher)
            try seal.begin(file, partial: head.digest)
            for number in 0..<100 {
                try body(BodySeal.chunkLength, number).withUnsafeBytes { try seal.write(file, $0, at: 0) }
                if number % 20 == 19 { seal = try BodySeal.open(file, cipher, head) }
                var nonce = [UInt8](repeating: 0, count: 12)
                _ = try nonce.withUnsafeMutableBytes {
                    try FileSystem.read(file, into: $0, at: Int64(BodySeal.headLength), path: nil)
                }
                #expect(nonces.insert(nonce).inserted)
            }
        }
    }

    @Test func namesOfFilesCanBeTurnedBack() {
        for number in 0..<100 {
            let digest = Digest.of(body(10, number))
            let name = cipher.name(of: digest)
            #expect(name != digest && cipher.digest(named: name) == digest)
            #expect(StoreCipher(SymmetricKey(size: .bits256)).name(of: digest) != name)
        }
    }
}
