import CachectlCore

/// Random choices where a few items are frequent and most are rare: the k-th most frequent of n has the weight 1 /
/// k^0.9, as measured for requests to web caches (Breslau et al., "Web Caching and Zipf-like Distributions", 1999).
struct SkewedOrder: Sendable {
    private static let exponent = 0.9

    private let choices: [Int]
    private let cumulated: [Double]

    /// - Parameter count: the number of items, 1 or more. The same items are always the frequent ones.
    init(count: Int) {
        var random = RandomBytes(seed: 1999)
        choices = (0..<count).shuffled(using: &random)
        var sum = 0.0
        cumulated = (1...count).map { rank in
            sum += 1 / pow(Double(rank), Self.exponent)
            return sum
        }
    }

    /// The next choice.
    func next(_ random: inout RandomBytes) -> Int {
        let target = random.fraction() * (cumulated.last ?? 0)
        var low = 0
        var high = cumulated.count - 1
        while low < high {
            let middle = (low + high) / 2
            if cumulated[middle] > target { high = middle } else { low = middle + 1 }
        }
        return choices[low]
    }
}
