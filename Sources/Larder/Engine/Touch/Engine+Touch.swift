import LMDB

extension Engine {
    /// Writes the uses that readers have noted, where that is due: displacement goes by them.
    ///
    /// Hints all the same: what does not fit the budget is dropped, and no failure keeps room from being made.
    func noteUses(_ writing: Writing) {
        let now = uptime.uptime()
        guard writing.touches.isDue(at: now, isDisplacing: true) else { return }
        do {
            try write(writing.touches.drain(at: now)[...])
            succeeded(.touches)
        } catch {
            failed(.touches, error)
        }
    }

    private func write(_ touches: ArraySlice<TouchTable.Line>) throws {
        if touches.isEmpty { return }
        let now = uptime.uptime()
        let isWritten: Void? = try mutateIfFitting(.touch) { mutation in
            for touch in touches { try mutation.touch(touch, at: now) }
        }
        if isWritten != nil || touches.count == 1 { return }
        let middle = touches.startIndex + touches.count / 2
        try write(touches[..<middle])
        try write(touches[middle...])
    }
}

extension Mutation {
    /// Writes the uses of an entry that were noted before `uptime`. False if it is gone or has moved.
    @discardableResult
    func touch(_ touch: TouchTable.Line, at uptime: UInt64) throws -> Bool {
        let age = Int64(clamping: (max(uptime, touch.lastUse) - touch.lastUse) / 1000)
        return try self.touch(stamp: touch.stamp, hits: touch.hits, accessed: now - .microseconds(age))
    }
}
