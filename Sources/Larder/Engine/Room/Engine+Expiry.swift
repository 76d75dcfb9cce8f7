import LMDB

extension Engine {
    /// Removes some of the entries that expired longer ago than `Configuration.expiredRetention`, in one transaction.
    /// Pinned and leased ones stay, in memory the pinned ones.
    ///
    /// A look at one row if there is nothing to do. Of several processes each looks; what one has removed the others do
    /// not find.
    /// - Returns: true if there are more.
    func removeExpired() throws -> Bool {
        // By both clocks: after the wall clock was set back, store time runs ahead, and what is put with a moment of
        // the wall clock has expired at once. Callers that judge by that clock themselves still use it.
        let moment = min(clock.now(), configuration.clock.now()) - configuration.expiredRetention.clampedToZero
        // Rows of times before 1970 are stored under 1970.
        guard moment.microseconds > 0 else { return false }
        memory.removeExpired(at: moment)
        guard try hasExpired(by: moment) else { return false }
        let limit = try removalLimit()
        // What does not fit the headroom while a snapshot is held waits: nothing needs it now.
        let removed = try mutateIfFitting(.housekeeping) { mutation in
            var victims: [Victim] = []
            while victims.count < limit, let victim = try mutation.firstExpired(by: moment) { victims.append(victim) }
            return victims
        }
        guard let victims = removed else { return false }
        report(victims)
        return victims.count == limit
    }

    private func hasExpired(by moment: Timestamp) throws -> Bool {
        try read { transaction in
            try transaction.withCursor(index.expiry) { cursor in
                guard let (row, _) = try cursor.first() else { return false }
                return row.precedes(Index.expiryEnd(moment))
            }
        }
    }
}

extension Duration {
    fileprivate var clampedToZero: Duration { max(self, .zero) }
}
