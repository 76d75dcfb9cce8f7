import Synchronization

/// The loads that are under way, so that they can be cancelled by URL or all at once.
final class ActiveLoads: Sendable {
    private let loads = Mutex<[ObjectIdentifier: Load]>([:])

    func insert(_ load: Load) { loads.withLock { $0[ObjectIdentifier(load)] = load } }
    func remove(_ load: Load) { loads.withLock { _ = $0.removeValue(forKey: ObjectIdentifier(load)) } }

    /// Cancels those that the predicate selects; returns how many.
    func cancel(where isSelected: (Load) -> Bool) -> Int {
        let selected = loads.withLock { $0.values.filter(isSelected) }
        for load in selected { load.cancel() }
        return selected.count
    }
}
