/// How fast is a lookup that finds nothing?
enum ReadMissing: Workload {
    static let name = "read-missing"
    static let question = "How fast is a miss?"

    static func run(_ plan: Plan) throws -> Tally {
        let order = Order.uniform(plan.reads, below: plan.entries, seed: plan.seed).map { $0 + plan.entries }
        return try plan.withFilledPeer { driver in
            let tally = try driver.get(order, mayMiss: true)
            guard tally.misses == order.count else { throw BenchError("a body was found that was never put") }
            return tally
        }
    }
}
