/// A set of byte positions, kept as ascending ranges that neither overlap nor touch.
public struct ByteRanges: Sendable, Hashable {
    /// The ranges, ascending.
    public private(set) var ranges: [Range<Int64>] = []

    /// Makes a set from ranges in any order. Empty and negative parts are left out.
    ///
    /// - Parameter ranges: may overlap. Default: none.
    public init(_ ranges: some Sequence<Range<Int64>> = EmptyCollection()) {
        for range in ranges { insert(range) }
    }

    /// Adds positions.
    ///
    /// - Parameter range: may overlap existing ranges; an empty or negative one changes nothing.
    public mutating func insert(_ range: Range<Int64>) {
        var lower = max(0, range.lowerBound)
        var upper = range.upperBound
        guard lower < upper else { return }
        // What comes in order costs nothing but itself.
        if ranges.last.map({ $0.upperBound < lower }) ?? true { return ranges.append(lower..<upper) }
        var result: [Range<Int64>] = []
        for known in ranges {
            if known.upperBound < lower || known.lowerBound > upper {
                result.append(known)
            } else {
                lower = min(lower, known.lowerBound)
                upper = max(upper, known.upperBound)
            }
        }
        let index = result.firstIndex { $0.lowerBound > lower } ?? result.count
        result.insert(lower..<upper, at: index)
        ranges = result
    }

    /// True if all positions of a range are in the set.
    ///
    /// - Parameter range: positions.
    /// - Returns: true for an empty range.
    public func contains(_ range: Range<Int64>) -> Bool {
        range.isEmpty || ranges.contains { $0.lowerBound <= range.lowerBound && range.upperBound <= $0.upperBound }
    }

    /// The positions of `whole` that are not in the set, ascending.
    ///
    /// - Parameter whole: positions.
    /// - Returns: the missing ranges; empty if there are none.
    public func gaps(in whole: Range<Int64>) -> [Range<Int64>] {
        var result: [Range<Int64>] = []
        var position = whole.lowerBound
        for range in ranges where range.upperBound > position {
            if range.lowerBound >= whole.upperBound { break }
            if range.lowerBound > position { result.append(position..<range.lowerBound) }
            position = range.upperBound
        }
        if position < whole.upperBound { result.append(position..<whole.upperBound) }
        return result
    }

    /// The positions of both sets.
    ///
    /// - Parameter other: another set.
    /// - Returns: a set with the positions of both.
    public func union(_ other: ByteRanges) -> ByteRanges { union(CollectionOfOne(other)) }

    /// The positions of all sets. It takes the time of sorting their ranges once, as clients that ask for thousands of
    /// small ranges can make them many.
    ///
    /// - Parameter others: further sets.
    /// - Returns: a set with the positions of all.
    public func union(_ others: some Sequence<ByteRanges>) -> ByteRanges {
        var all = ranges
        for other in others { all += other.ranges }
        all.sort { $0.lowerBound < $1.lowerBound }
        var result = ByteRanges()
        result.ranges.reserveCapacity(all.count)
        for range in all { result.extend(range) }
        return result
    }

    /// Adds a range that begins no earlier than the last one.
    private mutating func extend(_ range: Range<Int64>) {
        guard let last = ranges.last, range.lowerBound <= last.upperBound else { return ranges.append(range) }
        ranges[ranges.count - 1] = last.lowerBound..<max(last.upperBound, range.upperBound)
    }

    /// The number of positions.
    public var count: Int64 { ranges.reduce(0) { $0 + ($1.upperBound - $1.lowerBound) } }

    /// The offset of a position if the ranges are stored one after the other in ascending order; nil if it is not in
    /// the set.
    ///
    /// - Parameter position: a position in the representation.
    /// - Returns: bytes from the first stored byte.
    public func storageOffset(of position: Int64) -> Int64? {
        var offset: Int64 = 0
        for range in ranges {
            if range.contains(position) { return offset + position - range.lowerBound }
            offset += range.upperBound - range.lowerBound
        }
        return nil
    }
}
