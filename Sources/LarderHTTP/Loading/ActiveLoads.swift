import Locks

/// The loads that are under way, so that they can be waited for, and cancelled by URL or all at once.
final class ActiveLoads: Sendable {
    private struct State {
        var loads: [ObjectIdentifier: Load] = [:]
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())

    func insert(_ load: Load) { state.withLock { $0.loads[ObjectIdentifier(load)] = load } }

    func remove(_ load: Load) {
        let waiting = state.withLock { state -> [CheckedContinuation<Void, Never>] in
            state.loads[ObjectIdentifier(load)] = nil
            guard state.loads.isEmpty else { return [] }
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    /// Cancels those that the predicate selects; returns how many.
    func cancel(where isSelected: (Load) -> Bool) -> Int {
        let selected = state.withLock { $0.loads.values.filter(isSelected) }
        for load in selected { load.cancel() }
        return selected.count
    }

    /// Returns when nothing is under way.
    func drain() async {
        await withCheckedContinuation { continuation in
            let isIdle = state.withLock { state in
                if state.loads.isEmpty { return true }
                state.waiting.append(continuation)
                return false
            }
            if isIdle { continuation.resume() }
        }
    }
}
