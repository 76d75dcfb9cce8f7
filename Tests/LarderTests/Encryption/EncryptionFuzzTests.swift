import Crypto
import LMDB
import SystemPackage
import TestSupport
import Testing

@testable import Larder

/// What an encrypted store reads from its files, fed with mutations of good inputs: what is opened is what was sealed.
@Suite struct EncryptionFuzzTests {
    private let cipher = StoreCipher(SymmetricKey(data: [UInt8](repeating: 1, count: 32)))

    @Test func noKeyFileTraps() {
        let files = [
            "larder encryption 1\nkey given\ndata \(String(repeating: "0a", count: 60))\n",
            "larder encryption 1\nkey scrypt 32768 8 3 \(String(repeating: "01", count: 16))\n"
                + "data \(String(repeating: "f", count: 120))\n",
        ]
        FuzzRuns.decode(mutationsOf: files.map { Array($0.utf8) }, "noKeyFileTraps") { bytes in
            guard let key = StoreKey(String(decoding: bytes, as: UTF8.self)) else { return }
            try #require(StoreKey(key.contents)?.contents == key.contents)
        }
    }

    @Test func noRowTraps() {
        let (rows, place) = (cipher.rows, [UInt8]([1, 2, 3]))
        func sealed(_ count: Int) -> [UInt8] {
            var target = [UInt8](repeating: 0, count: count + rows.overhead)
            target.withUnsafeMutableBytes { target in
                body(count).withUnsafeBytes { row in place.withUnsafeBytes { rows.seal(row, into: target, at: $0) } }
            }
            return target
        }
        FuzzRuns.decode(mutationsOf: [0, 32, 1000].map(sealed), "noRowTraps") { bytes in
            guard bytes.count >= rows.overhead else { return }
            var opened = [UInt8](repeating: 0, count: bytes.count - rows.overhead)
            let isOpen = opened.withUnsafeMutableBytes { target in
                bytes.withUnsafeBytes { sealed in place.withUnsafeBytes { rows.open(sealed, into: target, at: $0) } }
            }
            if isOpen { try #require(opened == body(opened.count)) }
        }
    }

    /// As a complete body, and as one in progress.
    @Test(arguments: [false, true]) func noBodyFileTraps(_ isPartial: Bool) throws {
        let length = 40_000
        var head = BlobRecord(digest: Digest.of(body(length)))
        head.storedLength = UInt64(length)
        if isPartial { head.encoding = .partial }
        try withDirectory { directory in
            let path = directory.appending("file")
            let file = try FileSystem.open(path: path, flags: O_RDWR | O_CREAT)
            let seal = BodySeal(cipher)
            try seal.begin(file, partial: isPartial ? head.digest : nil)
            try body(length).withUnsafeBytes { try seal.write(file, $0, at: 0, total: Int64(length)) }
            if !isPartial { try seal.finish(file, head.digest, length: Int64(length), .identity) }
            let seed = try TestFiles.read(path)
            FuzzRuns.decode(mutationsOf: [seed], "noBodyFileTraps") { [head] bytes in
                try FileSystem.truncate(file, to: 0, path: path)
                try FileSystem.write(file, bytes, at: 0, path: path)
                var read = [UInt8](repeating: 0, count: 30_000)
                do {
                    let seal = try BodySeal.open(file, cipher, head)
                    let count = try read.withUnsafeMutableBytes {
                        try seal.read(file, into: $0, at: 5_000, length: isPartial ? nil : Int64(length))
                    }
                    try #require(Array(read[..<count]) == Array(body(length)[5_000..<5_000 + count]))
                } catch is SealDamage {}
            }
        }
    }
}
