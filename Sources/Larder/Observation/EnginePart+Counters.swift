/// Changes as callers make them: counted, and told to the readers of events.
extension EnginePart {
    /// A put was accepted.
    func noteStored(_ put: PendingPut) {
        counters.add(.puts)
        counters.add(.bytesWritten, put.length)
        tellStored(put.key, length: put.length)
    }

    func tellStored(_ key: Key, length: UInt64) {
        tell(.stored(key: key, length: ByteCount(Int64(clamping: length))))
    }

    /// A call removed the entry under a key.
    func noteRemoved(_ key: Key) {
        counters.add(.removed)
        tell(.removed(key: key))
    }

    /// Notes how long a call took that put a body.
    /// - Parameter began: its beginning, by the uptime.
    func notePut(since began: UInt64) { counters.note(.put, nanoseconds: uptime.uptime() &- began) }
}

extension Committer {
    /// Counts a batch that is over.
    /// - Parameters:
    ///   - failed: puts and removals of it that could not be committed.
    ///   - began: when it was taken to be committed, by the uptime.
    func countCommit(of batch: PendingSet.Batch, failed: Int, since began: UInt64) {
        guard batch.isWanted else { return }
        counters.add(.commits)
        let took = uptime.uptime() &- began
        counters.note(.commit, nanoseconds: took)
        var failed = failed
        for job in batch.jobs {
            if job.isCommitted {
                count(job)
            } else {
                failed += job.changes.count { if case .over = $0 { false } else { true } }
            }
        }
        if failed > 0 { counters.add(.failedChanges, UInt64(failed)) }
        logger(.commits).debug(
            "committed a batch",
            metadata: ["changes": "\(batch.count)", "failed": "\(failed)", "microseconds": "\(took / 1000)"])
    }

    private func count(_ job: PendingJob) {
        for (change, outcome) in zip(job.changes, job.outcomes) {
            switch (change, outcome) {
            case (.put(let put, _), .stored(_, let length)):
                counters.add(.puts)
                if case .content = put.body {} else { counters.add(.bytesWritten, length) }
                tellStored(put.key, length: length)
            // Those in memory were counted when they went.
            case (.removeContent(_, _, let fromMemory), .removed(let count)):
                counters.add(.removed, UInt64(count - fromMemory))
            case (let change, .removed(let count)) where count > 0:
                counters.add(.removed, UInt64(count))
                if let key = change.key { tell(.removed(key: key)) }
            default: break
            }
        }
    }
}

extension Checkpoints {
    /// A checkpoint was made.
    func noteCheckpoint(files: Int) {
        logger(.checkpoints).debug("made a checkpoint", metadata: ["files": "\(files)"])
        configuration.observer?(.checkpointed(files: files))
    }
}
