import ArgumentParser

/// How much a run of the targets measures.
enum Preset: String, CaseIterable, Codable, Sendable, ExpressibleByArgument {
    /// About a minute: a smoke test.
    case quick
    /// Under ten minutes on two cores: the report.
    case standard
    /// With 10,000,000 entries; takes long.
    case full

    /// Rounds of a comparison. Medians of fewer than five are for smoke tests.
    var rounds: Int { self == .quick ? 2 : 5 }

    /// Entries of the large store.
    var manyEntries: Int {
        switch self {
        case .quick: 50_000
        case .standard: 1_000_000
        case .full: 10_000_000
        }
    }

    /// Bodies of one size put in a round.
    func puts(_ size: BodySize) -> Int {
        let volume = self == .quick ? 8 << 20 : 96 << 20
        return min(max(volume / size.mean, 24), self == .quick ? 4000 : 20_000)
    }

    /// Gets of one size in a round.
    func gets(_ size: BodySize) -> Int {
        let volume = self == .quick ? 256 << 20 : 1 << 30
        return min(max(volume / size.mean, 200), self == .quick ? 20_000 : 100_000)
    }
}
