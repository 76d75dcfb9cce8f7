/// One line of the table: a target and what was reached.
struct TargetRow: Codable, Sendable {
    /// Which side of the target is met.
    enum Sense: String, Codable, Sendable { case atLeast, atMost }

    /// `P1`.
    var id: String
    /// What was measured, with the size or the case.
    var measure: String
    /// What it was measured against.
    var against: String
    var sense: Sense
    var target: Double
    /// The median over the rounds; nil if it could not be measured.
    var reached: Double?
    /// Behind both figures: `x`, ` B`, ` MiB`.
    var unit: String
    /// The figure of each round.
    var rounds: [Double] = []
    /// The rates or times behind it, or why there is none.
    var detail: String = ""

    /// Nil if it could not be measured.
    var isMet: Bool? { reached.map { sense == .atLeast ? $0 >= target : $0 <= target } }
}

extension TargetRow {
    /// A ratio of rates by round, the higher the better.
    init(_ id: String, _ measure: String, against: String, atLeast target: Double, _ comparison: Comparison) {
        self.init(
            id: id, measure: measure, against: against, sense: .atLeast, target: target, reached: comparison.ratio,
            unit: "x", rounds: comparison.ratios,
            detail: "\(Render.rate(comparison.subject)) to \(Render.rate(comparison.other))")
    }

    /// A ratio of times by round, the lower the better; figures in nanoseconds.
    init(_ id: String, _ measure: String, against: String, atMost target: Double, _ comparison: Comparison) {
        self.init(
            id: id, measure: measure, against: against, sense: .atMost, target: target, reached: comparison.ratio,
            unit: "x", rounds: comparison.ratios,
            detail: "\(Render.time(UInt64(comparison.subject))) to \(Render.time(UInt64(comparison.other)))")
    }
}
