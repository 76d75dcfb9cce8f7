import Foundation
import Larder

/// Two or more ways to do the same, measured in turn in one run.
struct TierPair {
    let what: String
    /// How many operations a run is.
    let count: Int
    let ways: [(name: String, run: () throws -> Void)]

    /// Operations a second of each way: medians of rounds in turn.
    func measure(rounds: Int, seconds: Double) throws -> TierRow {
        var rates = [[Double]](repeating: [], count: ways.count)
        for way in ways { try way.run() }
        for round in 0..<rounds {
            for number in ways.indices {
                // Each begins a round once.
                let way = (number + round) % ways.count
                rates[way].append(try rate(ways[way].run, seconds))
            }
        }
        let medians = rates.map { $0.sorted()[$0.count / 2] }
        return TierRow(what: what, names: ways.map(\.name), rates: medians)
    }

    private func rate(_ run: () throws -> Void, _ seconds: Double) throws -> Double {
        let began = Ticks.now()
        let end = began + UInt64(seconds * 1e9)
        var count = 0
        while Ticks.now() < end {
            try run()
            count += self.count
        }
        return Double(count) / (Double(Ticks.now() - began) / 1e9)
    }
}

/// What a pair has given.
struct TierRow {
    let what: String
    let names: [String]
    let rates: [Double]

    /// `| what | first | second, 1.23 x | ... |`
    var markdown: String {
        var cells = [what, "\(names[0]): \(Render.count(Int(rates[0])))"]
        for number in names.indices.dropFirst() {
            let ratio = Render.decimal(rates[number] / rates[0], 2)
            cells.append("\(names[number]): \(Render.count(Int(rates[number]))), \(ratio) x")
        }
        while cells.count < 4 { cells.append("") }
        return "| " + cells.joined(separator: " | ") + " |"
    }
}
