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

    /// Pieces in any order, with gaps, by several writers one after the other.
    @Test(arguments: 0..<20 as Range<UInt64>) func anyOrderOfWritesIsThatOfAFile(_ seed: UInt64) throws {
        try withFile { file in
            var generator = SeededGenerator(seed: seed)
            var model: [UInt8?] = []
            var head = BlobRecord(digest: Digest.of([UInt8(seed)]))
            head.encoding = .partial
            var seal = BodySeal(cipher)
            try seal.begin(file, partial: head.digest)
            for _ in 0..<40 {
                let start = Int.random(in: 0..<120_000, using: &generator)
                let bytes = (0..<Int.random(in: 1...30_000, using: &generator)).map { _ in
                    UInt8.random(in: 0...255, using: &generator)
                }
                if model.count < start + bytes.count {
                    model += [UInt8?](repeating: nil, count: start + bytes.count - model.count)
                }
                for (place, byte) in bytes.enumerated() { model[start + place] = byte }
                try bytes.withUnsafeBytes { try seal.write(file, $0, at: Int64(start)) }
                if Int.random(in: 0..<4, using: &generator) == 0 { seal = try BodySeal.open(file, cipher, head) }
                for _ in 0..<4 {
                    let place = Int.random(in: start..<start + bytes.count, using: &generator)
                    let count = min(start + bytes.count - place, 5_000)
                    try #expect(
                        read(seal, file, place..<place + count, nil).elementsEqual(
                            bytes[(place - start)..<(place - start + count)]))
                }
            }
            let end = Int.random(in: 1...model.count, using: &generator)
            try BodyFile(descriptor: file, seal: seal).cut(to: Int64(end), path: nil)
            for place in 0..<end where model[place] != nil && place % 7 == 0 {
                try #expect(read(seal, file, place..<place + 1, nil) == [model[place]])
            }
        }
    }

    /// Nonces are never used twice, whatever is written again.
    @Test func noNonceComesTwice() throws {
        try withFile { file in
            var nonces: Set<[UInt8]> = []
            var head = BlobRecord(digest: Digest.of([1]))
            head.encoding = .partial
            var seal = BodySeal(cipher)
            try seal.begin(file, partial: head.digest)
            for number in 0..<200 {
                try body(100, number).withUnsafeBytes { try seal.write(file, $0, at: Int64(number * 7 % 50)) }
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
