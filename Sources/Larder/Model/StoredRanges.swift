/// Ranges of bytes in order, none of which overlap or touch.
struct StoredRanges: Hashable, Sendable {
    private(set) var list: [Range<Int64>] = []

    init() {}

    /// Nil unless the ranges are in order, not empty, apart from each other, and start at 0 or later.
    init?(_ list: [Range<Int64>]) {
        var end: Int64 = -1
        for range in list {
            guard range.lowerBound > end, !range.isEmpty else { return nil }
            end = range.upperBound
        }
        self.list = list
    }

    var isEmpty: Bool { list.isEmpty }
    var count: Int { list.count }

    /// Where the last range ends; 0 if there is none.
    var end: Int64 { list.last?.upperBound ?? 0 }

    /// True if all of `0 ..< length` is there.
    func covers(_ length: Int64) -> Bool { end(from: 0) >= length }

    /// The end of the range that has the byte at `offset`; `offset` if none has it.
    func end(from offset: Int64) -> Int64 {
        guard let range = list[firstEnding(after: offset)...].first, range.contains(offset) else { return offset }
        return range.upperBound
    }

    /// The parts of `range` that are not there, in order.
    func gaps(in range: Range<Int64>) -> [Range<Int64>] {
        var gaps: [Range<Int64>] = []
        var start = range.lowerBound
        for present in list[firstEnding(after: start)...] {
            if present.lowerBound >= range.upperBound { break }
            if present.lowerBound > start { gaps.append(start..<present.lowerBound) }
            start = max(start, present.upperBound)
        }
        if start < range.upperBound { gaps.append(start..<range.upperBound) }
        return gaps
    }

    /// Adds a range, and joins what overlaps or touches.
    mutating func insert(_ range: Range<Int64>) {
        if range.isEmpty { return }
        // One that ends where this begins is joined, too.
        let first = firstEnding(after: range.lowerBound - 1)
        var next = first
        var joined = range
        while next < list.count, list[next].lowerBound <= range.upperBound {
            joined = min(joined.lowerBound, list[next].lowerBound)..<max(joined.upperBound, list[next].upperBound)
            next += 1
        }
        list.replaceSubrange(first..<next, with: [joined])
    }

    /// Takes a range out.
    mutating func remove(_ range: Range<Int64>) {
        if range.isEmpty { return }
        list = list.flatMap { present in
            [
                present.lowerBound..<min(present.upperBound, max(present.lowerBound, range.lowerBound)),
                max(present.lowerBound, min(present.upperBound, range.upperBound))..<present.upperBound,
            ].filter { !$0.isEmpty }
        }
    }

    /// The parts of `range` that are there, in order.
    func parts(in range: Range<Int64>) -> [Range<Int64>] {
        list[firstEnding(after: range.lowerBound)...].prefix { $0.lowerBound < range.upperBound }
            .map { $0.clamped(to: range) }
    }

    /// What the bytes take in blocks of `block` bytes, those that several ranges share counted once.
    func bytes(inBlocksOf block: Int64) -> Int64 {
        var sum: Int64 = 0
        var counted: Int64 = 0
        for range in list {
            let start = max(counted, range.lowerBound / block * block)
            let end = (range.upperBound + block - 1) / block * block
            sum += max(0, end - start)
            counted = max(counted, end)
        }
        return sum
    }

    /// The first range that ends after `offset`, by its place in the list.
    private func firstEnding(after offset: Int64) -> Int {
        var (low, high) = (0, list.count)
        while low < high {
            let middle = (low + high) / 2
            if list[middle].upperBound > offset { high = middle } else { low = middle + 1 }
        }
        return low
    }
}
