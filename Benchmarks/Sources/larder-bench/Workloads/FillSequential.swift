/// How fast does an empty store fill when keys come in order, as from an import?
enum FillSequential: Workload {
    static let name = "fill-seq"
    static let question = "How fast does an empty store fill when keys come in order?"

    static func run(_ plan: Plan) throws -> Tally {
        try plan.withPeer { try $0.put(0..<plan.entries) }
    }
}
