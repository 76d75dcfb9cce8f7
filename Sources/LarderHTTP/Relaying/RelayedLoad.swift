import HTTPCaching
import HTTPTypes
import Locks

/// The load that a request by ``Relay`` is to others: they may join it, wait for it, and cancel it. The relay ends it,
/// or leaves it to a ``Loader`` with what the origin answered, if it did. Dropped before, it is given up; it is active
/// for as long as it is held.
package final class RelayedLoad: Sendable {
    private struct State {
        var response: TransportResponse?
        var attempts = 0
        /// It has ended, or another has to end it.
        var isOver = false
        var isHandedOver = false
    }

    let load: Load
    let primary: String
    /// The key that others join it by; nil if none may.
    let joinKey: String?
    /// Of the list of what answers several queries of the path, when the request was made: see ``Generations``.
    let searchGeneration: UInt32
    private let joinable: JoinableLoads
    private let active: ActiveLoads
    private let state = Mutex(State())

    init(
        _ load: Load, primary: String, joinKey: String?, searchGeneration: UInt32, _ joinable: JoinableLoads,
        _ active: ActiveLoads
    ) {
        self.load = load
        self.primary = primary
        self.joinKey = joinKey
        self.searchGeneration = searchGeneration
        self.joinable = joinable
        self.active = active
        active.insert(load)
    }

    deinit {
        giveUp()
        // As long as its body arrives it can be cancelled and waited for.
        if !state.withLock({ $0.isHandedOver }) { active.remove(load) }
    }

    /// Nothing more is wanted of it by the client that began it. Who waits asks again.
    func giveUp() {
        guard isEnding() else { return }
        load.giveUp()
        if let joinKey { joinable.leave(joinKey, load, isShareable: nil) }
    }

    /// The origin has answered, or failed, and the head is there for the client.
    /// - Parameters:
    ///   - result: for those who wait. A response without ``Load/Shared`` they may find in the store.
    ///   - isShareable: see ``JoinableLoads/leave(_:_:isShareable:)``.
    func end(_ result: Result<Load.Arrival, FetchError>, isShareable: Bool?) {
        guard isEnding(), let joinKey else { return }
        // First: a request that comes now must find the store or ask again.
        joinable.leave(joinKey, load, isShareable: isShareable)
        load.letGoOfResponse()
        load.arrive(result)
    }

    private func isEnding() -> Bool {
        state.withLock { state in
            defer { state.isOver = true }
            return !state.isOver
        }
    }

    // MARK: For a loader

    /// The origin has answered.
    func hold(_ response: TransportResponse) { state.withLock { $0.response = response } }

    /// The origin was asked without success, which counts as an attempt.
    func noteAttempt() { state.withLock { $0.attempts += 1 } }

    /// How often the origin was asked without success; once.
    func takeAttempts() -> Int {
        state.withLock { state in
            defer { state.attempts = 0 }
            return state.attempts
        }
    }

    var hasResponse: Bool { state.withLock { $0.response != nil } }

    /// The load, for who ends it from now on.
    func handOver() -> Load {
        state.withLock { state in
            state.isOver = true
            state.isHandedOver = true
        }
        return load
    }

    /// The response, once: who does not need it any more must not hold its connection.
    func takeResponse() -> TransportResponse? {
        state.withLock { state in
            defer { state.response = nil }
            return state.response
        }
    }
}
