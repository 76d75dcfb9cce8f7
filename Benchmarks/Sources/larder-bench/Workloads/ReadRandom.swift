/// How fast are hits anywhere in the store?
enum ReadRandom: Workload {
    static let name = "read-random"
    static let question = "How fast are hits anywhere in the store?"

    static func run(_ plan: Plan) throws -> Tally {
        let order = Order.uniform(plan.reads, below: plan.entries, seed: plan.seed)
        return try plan.withFilledPeer { try $0.get(order) }
    }
}
