/// Which keys, in which order.
enum Order {
    /// 0 ..< `count` in an order that depends on the seed (Fisher and Yates).
    static func shuffled(_ range: Range<Int>, seed: UInt64) -> [Int] {
        var generator = Generator(seed: seed)
        return range.shuffled(using: &generator)
    }

    /// `count` numbers below `limit`, each as likely as the others.
    static func uniform(_ count: Int, below limit: Int, seed: UInt64) -> [Int] {
        var generator = Generator(seed: seed)
        return (0..<count).map { _ in Int(generator.next() % UInt64(limit)) }
    }

    /// `count` numbers below `limit`, a few of them often: 80% of the draws fall on 20% of the numbers, and so on
    /// within these.
    static func skewed(_ count: Int, below limit: Int, seed: UInt64) -> [Int] {
        var generator = Generator(seed: seed)
        return (0..<count).map { _ in
            var span = limit
            var start = 0
            while span > 8 {
                let fifth = span / 5
                if generator.next() % 10 < 8 {
                    span = fifth
                } else {
                    start += fifth
                    span -= fifth
                    break
                }
            }
            let rank = start + Int(generator.next() % UInt64(span))
            // The popular ones are anywhere among the keys.
            return Int(Generator.mix(UInt64(rank) ^ seed) % UInt64(limit))
        }
    }
}
