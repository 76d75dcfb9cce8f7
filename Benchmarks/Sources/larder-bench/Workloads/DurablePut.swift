/// How fast are puts that return when the body would survive a power loss, with `--threads` writers at once?
enum DurablePut: Workload {
    static let name = "durable-put"
    static let question = "How fast are puts that wait until the body would survive a power loss?"

    static func run(_ plan: Plan) throws -> Tally {
        try plan.withPeer { driver in
            var driver = driver
            driver.isDurable = true
            return try driver.put(0..<plan.entries)
        }
    }
}
