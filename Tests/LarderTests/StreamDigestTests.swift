import SeededData
import TestSupport
import Testing

@testable import Larder

/// Bodies that are hashed in pieces, by their writer and by the worker in turn.
@Suite struct StreamDigestTests {
    @Test func piecesAreHashedInOrderWhoeverHashesThem() throws {
        let threads = Threads(6) { number in
            for round in 0..<10 {
                var generator = SeededGenerator(seed: UInt64(number * 100 + round))
                let digest = StreamDigest()
                var whole: [UInt8] = []
                for _ in 0..<Int.random(in: 0...12, using: &generator) {
                    // Below and above what is handed over, and more than is taken on.
                    let length = Int.random(in: 0...1 << Int.random(in: 0...19, using: &generator), using: &generator)
                    let piece = body(length, Int.random(in: 0...1000, using: &generator))
                    let isBeside = Bool.random(using: &generator)
                    piece.withUnsafeBytes { digest.update($0, isBeside: isBeside) }
                    whole += piece
                }
                let found = digest.finalize()
                #expect(found == Digest.of(whole))
            }
        }
        try threads.join()
    }
}
