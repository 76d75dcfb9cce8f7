import Larder

/// How the store behind a cache is.
extension HTTPCache {
    /// Times that the store could not be read or written since the cache was made. A body over a limit does not count.
    public var storeFailures: UInt64 { changes.watch.failures }

    /// Takes over the count of a cache whose place this one takes, so that figures do not fall back.
    package func continueCounting(after other: HTTPCache) { changes.watch.add(other.changes.watch.failures) }

    /// What is wrong with the store now. Waits for the disk, on no thread of the cooperative pool.
    ///
    /// Failures of reading and writing are listed here until the same work succeeds again; those of the store's own
    /// work until the store reports them over.
    ///
    /// - Returns: one item for each kind of work that fails; empty when all is well.
    public func storeTroubles() async -> [StoreTrouble] {
        var troubles = changes.watch.troubles
        do {
            try await store.perform { [store] in try store.checkPlace() }
        } catch {
            troubles.append(Self.trouble(.place, error))
        }
        do {
            for failure in try await store.statistics().failures {
                troubles.append(
                    StoreTrouble(
                        work: .upkeep, code: failure.code, message: "\(failure.work.rawValue): \(failure.message)",
                        count: failure.count))
            }
        } catch is CancellationError {
            // It says nothing about the store.
        } catch {
            if !troubles.contains(where: { $0.work == .read }) { troubles.append(Self.trouble(.read, error)) }
        }
        return troubles
    }

    private static func trouble(_ work: StoreTrouble.Work, _ error: any Error) -> StoreTrouble {
        StoreTrouble(work: work, code: (error as? LarderError)?.code, message: "\(error)", count: 1)
    }
}
