import LMDB

/// Application versions and the numbers that stand for them. Their state is in the index.
final class Versions: EnginePart {
    let context: EngineContext
    /// Nil in a read-only engine.
    private let changes: Changes?

    /// What it takes to give a version a number.
    struct Changes: Sendable {
        let room: RoomMaker
        let ledger: Ledger
    }

    init(context: EngineContext, changes: Changes?) {
        self.context = context
        self.changes = changes
    }

    /// The number that stands for an application version, taken now if it is new; nil for no version.
    func number(of name: String?) throws -> UInt16? {
        guard let name else { return nil }
        // A `clear()` under way forgets what no open store asks for, and may have looked before this one was there.
        if changes != nil, context.audience.isShared { try waitForWriter() }
        if let known = try read({ try index.versionNumber(name, $0) }) { return known }
        // A read-only store has no entries of a version it does not know: returns a number that no record has.
        guard let changes else { return .max }
        return try changes.room.mutate(.put) { mutation in
            if let known = try index.versionNumber(name, mutation.reading) { return known }
            guard let number = Self.freeVersion(Set(try index.versions(mutation.reading).values)) else {
                throw LarderError(
                    .invalidArgument,
                    "\(path) has seen \(Self.lastVersion) application versions, the most there can be: "
                        + "`Store.clear()` forgets them, when no other process has the store open",
                    path: path)
            }
            try mutation.transaction.put(
                index.meta, Index.versionKey(name), withUnsafeBytes(of: number.littleEndian) { Array($0) })
            mutation.noteChange(trees: 1)
            return number
        }
    }

    /// Waits until the write transaction that is under way, if any, has ended.
    private func waitForWriter() throws {
        do {
            try index.environment.beginWrite().abort()
        } catch {
            throw translate(error)
        }
    }

    private static let lastVersion: UInt16 = .max - 1

    /// The number for a version that is new: the next one, for numbers must not mean one version to a store that is
    /// open and another to the next; and when those are used up, one that was forgotten long ago.
    static func freeVersion(_ used: Set<UInt16>) -> UInt16? {
        let highest = used.filter { $0 <= lastVersion }.max() ?? 0
        if highest < lastVersion { return highest + 1 }
        return (1...lastVersion).first { !used.contains($0) }
    }

    /// Forgets the versions that no entry is left of, in a store that was cleared: all but those of open stores, and
    /// the latest, from which numbering continues.
    func forget(in mutation: Mutation) throws {
        guard let changes, changes.ledger.others.isEmpty else { return }
        let seen = try index.versions(mutation.reading)
        let inUse = context.audience.versions
        let latest = seen.values.max()
        for (name, number) in seen where number != latest && !inUse.contains(name) {
            try mutation.transaction.delete(index.meta, Index.versionKey(name))
            mutation.noteChange(trees: 1)
        }
    }
}
