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
    /// - Throws: `invalidArgument` (see `Budget`); `noSpace` if the pinned or leased entries alone exceed the new
    ///   limits, or the disk is too full to displace: the limits are set anyway, and puts throw `noSpace` until there
    ///   is room. Setting the same limits again makes them hold. `closed`, `readOnly`, `io`.
    @available(*, noasync, message: "Use `perform`, which waits off the cooperative threads.")
    public func setBudget(_ budget: Budget) throws {
        let writing = try writing()
        engine.commitPending()
        try writing.roomMaker.set(budget)
    }
}
