/// What does a put cost if its body is already stored under other keys? A hundred keys share each body.
enum Dedup: Workload {
    static let name = "dedup"
    static let question = "What does a put cost if its body is already stored under another key?"

    static func run(_ plan: Plan) throws -> Tally {
        let bodies = plan.bodies
        return try plan.withPeer { driver in
            try driver.put(0..<plan.entries) { bodies.body($0 % max(1, plan.entries / 100)) }
        }
    }
}
