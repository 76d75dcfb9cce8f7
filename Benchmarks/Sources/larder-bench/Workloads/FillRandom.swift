/// How fast does an empty store fill when keys come in random order, as from users?
enum FillRandom: Workload {
    static let name = "fill-random"
    static let question = "How fast does an empty store fill when keys come in random order?"

    static func run(_ plan: Plan) throws -> Tally {
        let order = Order.shuffled(0..<plan.entries, seed: plan.seed)
        return try plan.withPeer { try $0.put(order) }
    }
}
