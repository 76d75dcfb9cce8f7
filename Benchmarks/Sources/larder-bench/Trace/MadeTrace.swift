/// A trace that is made, for a machine without one of real requests: the same seed gives the same requests.
///
/// Four parts, as caches in front of sites meet them: objects whose popularity falls with their rank, objects asked for
/// once, walks that read thousands of neighbours in a row, and now and then a set of popular objects that gives way to
/// a new one. Sizes are those of the web.
extension TraceFile {
    static let madeRequests = 100_000

    static func made(seed: UInt64) -> TraceFile {
        var generator = Generator(seed: seed)
        let popular = Order.skewed(madeRequests, below: 12_000, seed: seed)
        var requests: [Request] = []
        var (once, walk) = (UInt64(1) << 40, 0)
        func add(_ object: UInt64) {
            requests.append(Request(object: object, size: BodySize.web.length(object)))
        }
        while requests.count < madeRequests {
            let position = requests.count
            if walk > 0 {
                walk -= 1
                add(1 << 41 | UInt64((position / 40_000) % 2 * 5000 + walk))
            } else if position % 20_000 == 19_999 {
                walk = 3000
                add(1 << 42)
            } else if generator.next() % 100 < 15 {
                once += 1
                add(once)
            } else {
                // A tenth of the popular objects changes every 10,000 requests.
                let rank = popular[position]
                let age = rank % 10 == (position / 10_000) % 10 ? position / 10_000 : 0
                add(UInt64(rank) | UInt64(age) << 20)
            }
        }
        return TraceFile(requests: requests)
    }

    /// Bytes of all objects, each once.
    var footprint: Int {
        var sizes: [UInt64: Int] = [:]
        for request in requests { sizes[request.object] = request.size }
        return sizes.values.reduce(0, +)
    }
}
