import Testing

@testable import HTTPCaching

/// Sets of byte positions, against sets of numbers.
@Suite struct ByteRangesTests {
    private func positions(_ ranges: ByteRanges) -> Set<Int64> { Set(ranges.ranges.joined()) }

    private func isProper(_ ranges: ByteRanges) -> Bool {
        zip(ranges.ranges, ranges.ranges.dropFirst()).allSatisfy { $0.upperBound < $1.lowerBound }
            && ranges.ranges.allSatisfy { !$0.isEmpty }
    }

    @Test func unionsHaveThePositionsOfBoth() {
        var random = SystemRandomNumberGenerator()
        for _ in 0..<2_000 {
            let sets = (0..<2).map { _ in
                ByteRanges(
                    (0..<Int.random(in: 0...6, using: &random)).map { _ in
                        let lower = Int64.random(in: -3...40, using: &random)
                        return lower..<(lower + Int64.random(in: 0...8, using: &random))
                    })
            }
            let union = sets[0].union(sets[1])
            #expect(isProper(sets[0]) && isProper(union), "\(sets)")
            #expect(positions(union) == positions(sets[0]).union(positions(sets[1])), "\(sets)")
        }
    }

    /// 20,000 ranges of one byte each, four apart.
    private static func bytes(from first: Int64) -> [Range<Int64>] {
        (0..<20_000).map { (number: Int64) -> Range<Int64> in
            let lower: Int64 = first + number * 4
            return lower..<(lower + 1)
        }
    }

    /// Requests for many small ranges make such sets, and each of them reads all of it. By insertion, one after the
    /// other, the union takes minutes.
    @Test func manyRangesCostTheTimeOfReadingThem() {
        let even = ByteRanges(Self.bytes(from: 0))
        let odd = ByteRanges(Self.bytes(from: 2))
        #expect(even.union(odd).ranges.count == 40_000)
    }
}
