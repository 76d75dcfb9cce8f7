import Foundation
import SeededData
import Testing

@testable import LarderURLSession

#if canImport(Glibc)
    import Glibc
#endif

/// The file that takes what arrives before it is read.
struct OverflowTests {
    @Test func bytesComeBackInOrder() throws {
        var overflow = Overflow()
        var generator = SeededGenerator(seed: 7)
        var (written, read): ([UInt8], [UInt8]) = ([], [])
        for _ in 0..<200 {
            if Bool.random(using: &generator) {
                let piece = (0..<Int.random(in: 1...70_000, using: &generator)).map { UInt8(truncatingIfNeeded: $0) }
                written += piece
                try overflow.append(Data(piece))
            } else {
                read += try overflow.take(Int.random(in: 1...100_000, using: &generator))
            }
            #expect(overflow.count == written.count - read.count)
        }
        while overflow.count > 0 { read += try overflow.take(1 << 20) }
        #expect(read == written)
        #expect(try overflow.take(1).isEmpty)
    }

    /// A reader that never quite catches up must not make the file take the room of the whole body.
    @Test func whatWasReadGivesItsRoomBack() throws {
        var overflow = Overflow()
        let piece = Data(repeating: 7, count: 1 << 20)
        for _ in 0..<4 { try overflow.append(piece) }
        var most: Int64 = 0
        for _ in 0..<64 {
            try overflow.append(piece)
            #expect(try overflow.take(1 << 20).count == 1 << 20)
            most = max(most, overflow.allocatedBytes)
        }
        #expect(most > 0 && most < 16 << 20)
    }
}
