/// What remains of the rates when everything happens at once: 85% gets, mostly of a few keys, 13% puts, 2% removals?
enum Mixed: Workload {
    static let name = "mixed"
    static let question = "How fast are 85% gets, 13% puts and 2% removals together?"

    private enum Step { case get, put([UInt8]), remove }

    static func run(_ plan: Plan) throws -> Tally {
        let bodies = plan.bodies
        var generator = Generator(seed: plan.seed ^ 0xFF)
        let count = min(plan.reads, max(1000, (512 << 20) / plan.size.mean))
        let keys = Order.skewed(count, below: plan.entries, seed: plan.seed)
        return try plan.withFilledPeer { driver in
            let peer = driver.peer
            let steps = keys.enumerated().map { position, key -> (Name, Step) in
                switch generator.next() % 100 {
                case 0..<85: (peer.name(key), .get)
                case 85..<98: (peer.name(key), .put(bodies.body(key, version: position + 1)))
                default: (peer.name(key), .remove)
                }
            }
            return try driver.timed(steps.count) { position, scratch, tally in
                let (name, step) = steps[position]
                switch step {
                case .get:
                    if let count = try peer.get(name, scratch) { tally.bytes += count } else { tally.misses += 1 }
                case .put(let body):
                    try peer.put(body, name)
                    tally.bytes += body.count
                case .remove: try peer.remove(name)
                }
            } end: {
                try peer.settle()
            }
        }
    }
}
