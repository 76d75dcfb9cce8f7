/// How fast are hits on a working set that fits every cache of the machine: 1,000 keys, read repeatedly?
enum ReadHot: Workload {
    static let name = "read-hot"
    static let question = "How fast are hits on 1,000 keys that are read repeatedly?"

    static func run(_ plan: Plan) throws -> Tally {
        let hot = min(1000, plan.entries)
        let order = Order.uniform(plan.reads, below: hot, seed: plan.seed)
        return try plan.withFilledPeer { driver in
            _ = try driver.get(0..<hot)
            return try driver.get(order)
        }
    }
}
