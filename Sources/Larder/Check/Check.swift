/// Verifies the invariants of a store.
struct Check {
    let engine: Engine
    let isRepairing: Bool
    let readsBodies: Bool
    var report = CheckReport()

    init(engine: Engine, isRepairing: Bool, readsBodies: Bool) {
        self.engine = engine
        self.isRepairing = isRepairing
        self.readsBodies = readsBodies
    }

    mutating func run(_ progress: (CheckProgress) throws -> Void) throws -> CheckReport { report }
}
