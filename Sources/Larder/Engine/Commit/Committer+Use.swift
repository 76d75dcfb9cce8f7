extension Committer {
    /// Something that happened to an entry since the last commit.
    enum Use {
        case touch(TouchTable.Line)
        /// Of an entry whose stamp was not known yet: it was being committed.
        case touchKey(Key, PendingSet.KeyTouch)
        case put(PendingPut)
        case remove(PendingRemoval)
        case job(PendingJob)

        var isTouch: Bool {
            switch self {
            case .touch, .touchKey: true
            case .put, .remove, .job: false
            }
        }

        /// The change whose outcome a caller may have to hear of.
        var change: PendingChange? {
            switch self {
            case .touch, .touchKey, .job: nil
            case .put(let put): put
            case .remove(let removal): removal
            }
        }

        /// True if files become bodies with it.
        var namesFiles: Bool { if case .job(let job) = self { job.namesFiles } else { !stagedFiles.isEmpty } }

        /// Files that become bodies with it, and are not needed if it fails.
        var stagedFiles: [StagedFile] {
            switch self {
            case .put(let put):
                if case .staged(let file) = put.body { return [file] }
                return []
            case .job(let job): return job.stagedFiles
            case .touch, .touchKey, .remove: return []
            }
        }
    }
}
