/// What does it cost to put a new body under a key that has one, so that the old body has to be removed?
enum Overwrite: Workload {
    static let name = "overwrite"
    static let question = "What does a new body under an existing key cost?"

    static func run(_ plan: Plan) throws -> Tally {
        let order = Order.shuffled(0..<plan.entries, seed: plan.seed)
        return try plan.withFilledPeer { try $0.put(order, version: 1) }
    }
}
