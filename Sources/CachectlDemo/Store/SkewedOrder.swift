import CachectlCore

/// Choices in which a few are asked for often and most seldom: the k-th most wanted of n with a weight of 1 / k^0.9, as
/// measured of the requests that web caches see (Breslau et al., "Web Caching and Zipf-like Distributions", 1999).
struct SkewedOrder: Sendable {
    private static let exponent = 0.9

    private let choices: [Int]
    private let cumulated: [Double]

    /// - Parameter count: numbers of things to choose from, 1 or more. Which of them are wanted is always the same.
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
