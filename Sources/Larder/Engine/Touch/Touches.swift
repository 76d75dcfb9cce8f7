/// Writes uses of entries that readers have noted, before displacement goes by them. The committer writes them
/// otherwise. Without state beside the buffer.
final class Touches: EnginePart {
    let context: EngineContext
    private let buffer: TouchBuffer
    private let transactions: Transactions

    init(context: EngineContext, buffer: TouchBuffer, transactions: Transactions) {
        self.context = context
        self.buffer = buffer
        self.transactions = transactions
    }

    /// Writes the uses that readers have noted, where that is due: displacement goes by them.
    ///
    /// Hints all the same: what does not fit the budget is dropped, and no failure keeps room from being made.
    func writeIfDue() {
        let now = uptime.uptime()
        guard buffer.isDue(at: now, isDisplacing: true) else { return }
        let touches = buffer.drain(at: now)
        defer { buffer.noteWritten(touches.count, in: uptime.uptime() &- now) }
        do {
            try write(touches[...])
            succeeded(.touches)
        } catch {
            failed(.touches, error)
        }
    }

    private func write(_ touches: ArraySlice<TouchTable.Line>) throws {
        if touches.isEmpty { return }
        let now = uptime.uptime()
        let isWritten: Void? = try transactions.commitIfFitting(.touch) { mutation in
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
        let accessed = now - .microseconds(age)
        if try self.touch(stamp: touch.stamp, hits: touch.hits, accessed: accessed) { return true }
        guard let stamp = earlierMoves?.follow(touch.stamp, in: moves) else { return false }
        return try self.touch(stamp: stamp, hits: touch.hits, accessed: accessed)
    }
}
