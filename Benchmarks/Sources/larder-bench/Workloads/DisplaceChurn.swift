/// How fast are puts when the budget is full and each of them displaces another entry? The budget holds about half of
/// the entries; it is filled, then three times the budget is put in addition.
enum DisplaceChurn: Workload {
    static let name = "displace-churn"
    static let question = "How fast are puts at a full budget, where each displaces another entry?"

    static func run(_ plan: Plan) throws -> Tally {
        guard plan.kind == .larder || plan.kind == .larderSpan || plan.kind == .directory else {
            throw BenchError("\(plan.kind.rawValue) keeps no budget: displace-churn is for larder and directory")
        }
        let budget = max(16 << 20, Int64(plan.entries) * Int64(plan.size.mean) / 2)
        return try plan.withFilledPeer(PeerOptions(budgetBytes: budget)) { driver in
            try driver.put(plan.entries..<plan.entries + plan.entries * 3 / 2)
        }
    }
}
