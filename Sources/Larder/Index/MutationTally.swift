/// The counters of a store as they will be after a commit, and what the commit costs in pages of the index.
///
/// One for each `Mutation`, which shares it with its `BlobChanges`; used by one thread.
final class MutationTally {
    var state: StoreState
    /// Pages of inline bodies written, and an upper bound of other pages touched.
    var writtenPages = 0
    /// Pages that removals set free, which the commit has to list.
    var freedPages = 0

    init(_ state: StoreState) { self.state = state }

    /// Every change counts the pages it may copy: one path from root to leaf in each tree it touches.
    func noteChange(trees: Int) { writtenPages += trees * 3 }

    func takeID() -> UInt64 {
        defer { state.nextID &+= 1 }
        return state.nextID
    }

    func takeStamp() -> UInt64 {
        defer { state.nextStamp &+= 1 }
        return state.nextStamp
    }
}
