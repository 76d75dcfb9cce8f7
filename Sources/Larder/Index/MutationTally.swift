/// The counters of a store as they will be after a commit, and what the commit costs in pages of the index.
///
/// One for each `Mutation`, which shares it with its `BlobChanges`; used by one thread.
final class MutationTally {
    var state: StoreState
    /// Pages of bodies and long records written.
    var bodyPages = 0
    /// Pages of the trees copied, if no two changes have any in common.
    var treePages = 0
    /// Pages that removals set free, which the commit has to list.
    var freedPages = 0

    init(_ state: StoreState) { self.state = state }

    /// Every change counts the pages it may copy: one path from root to leaf in each tree it touches.
    func noteChange(trees: Int) { treePages += trees * 3 }

    /// A value of more than half a page has pages of its own.
    func noteValue(bytes: Int, _ index: Index) {
        let pageSize = index.environment.pageSize
        // The key of a sealed row is a part of its value.
        let count = index.environment.valueLength(index.entries, key: 511, value: bytes)
        if count > pageSize / 2 - 64 { bodyPages += count / pageSize + 1 }
    }

    func takeID() -> UInt64 {
        defer { state.nextID &+= 1 }
        return state.nextID
    }

    func takeStamp() -> UInt64 {
        defer { state.nextStamp &+= 1 }
        return state.nextStamp
    }
}
