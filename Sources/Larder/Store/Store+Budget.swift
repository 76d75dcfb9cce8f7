extension Store {
    /// The limits in force. Kept in the store: another process may have changed them.
    /// - Throws: `closed`, `io`, `readersFull`.
    public func budget() throws -> Budget {
        try requireOpen()
        return try engine.budget()
    }

    /// Changes the limits, for every process that uses the store, and displaces until they hold.
    ///
    /// - Parameter budget: replaces all limits.
    /// - Throws: `invalidArgument` (see `Budget`); `noSpace` if what is pinned or leased alone exceeds the new limits,
    ///   or the disk is too full to displace: they are set all the same, and puts throw `noSpace` until there is room.
    ///   Setting the same limits again makes them hold. `closed`, `readOnly`, `io`.
    public func setBudget(_ budget: Budget) throws {
        _ = try writing()
        engine.commitPending()
        try engine.set(budget)
    }

    /// Changes the limits, for every process that uses the store, and displaces until they hold.
    ///
    /// Parameters, result and errors are those of the synchronous form. It runs on a thread that may wait for the disk.
    public func setBudget(_ budget: Budget) async throws {
        try await IOPool.long.run { [self] in try setBudget(budget) }
    }
}

extension Engine {
    /// Sets the limits that an open asks for, unless they are set already.
    func adopt(_ budget: Budget) throws {
        if try state().budget != budget.with(pageSize: index.environment.pageSize) { try set(budget) }
    }

    /// Sets the limits and makes them hold.
    func set(_ budget: Budget) throws {
        guard let writing else { throw readOnly() }
        let budget = budget.with(pageSize: index.environment.pageSize)
        try budget.validate()
        var isOverfull = false
        while try state().entryCount > UInt64(clamping: budget.entries) {
            let limit = try removalLimit()
            let victims = try mutate(.housekeeping) { mutation in
                var victims: [Victim] = []
                while victims.count < limit, mutation.state.entryCount > UInt64(clamping: budget.entries),
                    let victim = try mutation.displaceNext()
                {
                    victims.append(victim)
                }
                return victims
            }
            report(victims)
            if victims.isEmpty {
                isOverfull = true
                break
            }
        }
        if try state().budget != budget { try mutate(.housekeeping) { $0.state.budget = budget } }
        while true {
            let excess = try writing.room.excess(adding: 0, state())
            if excess == 0 { break }
            // Free pages of the index go before entries do; what was displaced inline is such pages now.
            if try indexFree() > 0, try giveBack(excess, leastRun: Self.longRun) > 0 { continue }
            // In steps that another process notices little of.
            let step = min(excess, 32 << 20)
            guard try makeRoom(step, writing, isMissing: { min(step, try writing.room.excess(adding: 0, $0)) }) else {
                throw noRoom()
            }
        }
        if isOverfull { throw noRoom() }
    }
}
