/// Two things measured in turn, round by round, and their ratio in each round: a disturbance of the machine affects
/// both.
struct Comparison: Sendable {
    private(set) var subjects: [Double] = []
    private(set) var others: [Double] = []

    /// Measures both `rounds` times. Which one comes first changes with each round.
    static func run(rounds: Int, _ subject: (Int) throws -> Double, _ other: (Int) throws -> Double) throws
        -> Comparison
    {
        var comparison = Comparison()
        for round in 0..<rounds {
            try Interruption.check()
            if round % 2 == 0 {
                comparison.subjects.append(try subject(round))
                comparison.others.append(try other(round))
            } else {
                comparison.others.append(try other(round))
                comparison.subjects.append(try subject(round))
            }
        }
        return comparison
    }

    /// Adds a round measured elsewhere.
    mutating func append(_ subject: Double, _ other: Double) {
        subjects.append(subject)
        others.append(other)
    }

    /// Subject over other, by round.
    var ratios: [Double] { zip(subjects, others).map { $0 / max($1, 1e-12) } }
    /// The median of the ratios.
    var ratio: Double { Self.median(ratios) }
    /// The median of the subject's figures.
    var subject: Double { Self.median(subjects) }
    /// The median of the other's figures.
    var other: Double { Self.median(others) }

    /// The middle one, or the mean of the middle two; 0 of none.
    static func median(_ values: [Double]) -> Double {
        let sorted = values.sorted()
        guard let last = sorted.last else { return 0 }
        let middle = sorted.count / 2
        if sorted.count == 1 { return last }
        return sorted.count % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
    }
}
