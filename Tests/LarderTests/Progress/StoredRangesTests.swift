import Testing

@testable import Larder

struct StoredRangesTests {
    /// Compared with a set of single bytes.
    @Test func rangesAreThoseOfTheirBytes() {
        var generator = SystemRandomNumberGenerator()
        for _ in 0..<300 {
            var ranges = StoredRanges()
            var bytes: Set<Int64> = []
            for _ in 0..<12 {
                let start = Int64.random(in: 0..<60, using: &generator)
                let range = start..<(start + Int64.random(in: 0..<12, using: &generator))
                let gaps = ranges.gaps(in: range)
                #expect(Set(gaps.flatMap { Array($0) }) == Set(range).subtracting(bytes))
                #expect(gaps.allSatisfy { !$0.isEmpty })
                ranges.insert(range)
                bytes.formUnion(range)
                #expect(Set(ranges.list.flatMap { Array($0) }) == bytes)
                #expect(StoredRanges(ranges.list) == ranges)
                for offset in Int64(0)..<75 {
                    let end = (offset..<80).first { !bytes.contains($0) } ?? 80
                    #expect(ranges.end(from: offset) == end)
                }
                #expect(ranges.bytes(inBlocksOf: 8) == Int64(Set(bytes.map { $0 / 8 }).count * 8))
                #expect(ranges.covers(10) == bytes.isSuperset(of: 0..<10))
            }
        }
    }

    @Test(arguments: [[0..<0], [3..<5, 5..<7], [5..<7, 0..<2], [0..<4, 3..<6], [-1..<4]])
    func otherListsAreNone(_ list: [Range<Int64>]) { #expect(StoredRanges(list) == nil) }
}
