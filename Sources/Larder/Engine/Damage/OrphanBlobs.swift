import LMDB

/// Files in `blobs/` that the index does not have. Without state of its own.
///
/// Renames into `blobs/` happen under the writer lock with a record in place, so under that lock a file without one is
/// an orphan at once: no grace period is needed.
final class OrphanBlobs: EnginePart {
    let context: EngineContext
    private let transactions: Transactions

    init(context: EngineContext, transactions: Transactions) {
        self.context = context
        self.transactions = transactions
    }

    /// Removes the orphans in a directory of `blobs/`; returns how many.
    func remove(in directory: Directory) throws -> Int {
        let orphans = try context.orphanBlobs(in: directory)
        return orphans.isEmpty ? 0 : try remove(orphans, in: directory)
    }

    /// Removes those files that are orphans still; returns how many.
    @discardableResult
    func remove(_ orphans: [String], in directory: Directory) throws -> Int {
        try transactions.housekeep { mutation in
            var removed = 0
            for name in orphans where try !index.hasBlobFile(files.digest(ofFile: name), mutation.reading) {
                if try FileSystem.unlinkFile(name, in: directory) { removed += 1 }
            }
            return removed
        }
    }
}

extension EngineContext {
    /// The orphans in a directory of `blobs/`, for those who count only.
    func orphanBlobs(in directory: Directory) throws -> [String] {
        let names = try directory.names(of: .shard)
        if names.isEmpty { return [] }
        return try read { transaction in
            try names.filter { try !index.hasBlobFile(files.digest(ofFile: $0), transaction) }
        }
    }
}

extension Index {
    /// True if a file whose name stands for that digest belongs in `blobs/`: there is a body with it, it is in a file,
    /// and that is not damaged.
    func hasBlobFile(_ digest: Digest?, _ transaction: ReadTransaction) throws -> Bool {
        guard let digest, let head = try blob(digest, transaction)?.head else { return false }
        return head.location == .file && !head.isDamaged
    }
}
