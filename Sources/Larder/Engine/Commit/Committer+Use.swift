extension Committer {
    /// Something that happened to an entry since the last commit.
    enum Use {
        case touch(TouchTable.Line)
        /// Of an entry whose stamp was not known yet: it was being committed.
        case touchKey(Key, PendingSet.KeyTouch)
        /// A put or a removal.
        case change(Change, PendingChange)
        case job(PendingJob)

        var isTouch: Bool {
            switch self {
            case .touch, .touchKey: true
            case .change, .job: false
            }
        }

        var isPutOfFile: Bool { if case .change(.put(let put, _), _) = self { put.stagedFile != nil } else { false } }

        /// The put or removal whose outcome a caller may have to hear of.
        var pending: PendingChange? { if case .change(_, let pending) = self { pending } else { nil } }

        /// True if files become bodies with it whose names have to be on disk before, where it is durable.
        var namesFiles: Bool {
            switch self {
            case .change(let change, _): change.namesFile
            case .job(let job): job.changes.contains(where: \.namesFile)
            case .touch, .touchKey: false
            }
        }

        /// Files that become bodies with it, and are not needed if it fails.
        var stagedFiles: [StagedFile] {
            switch self {
            case .change(let change, _): change.stagedFile.map { [$0] } ?? []
            case .job(let job): job.stagedFiles
            case .touch, .touchKey: []
            }
        }
    }
}
