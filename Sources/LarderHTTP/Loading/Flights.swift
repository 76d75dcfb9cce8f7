import HTTPCaching
import HTTPTypes
import Synchronization

/// Loads that others may join, by primary key (RFC 9111 section 4: requests may be collapsed).
final class Flights: Sendable {
    private struct State {
        var loads: [String: Load] = [:]
        /// Keys whose last response could not be stored: nobody waits for the next one.
        var passes: Set<String> = []
    }

    private static let passLimit = 4_096
    private let state = Mutex(State())

    enum Place {
        /// Somebody asks already.
        case join(Load)
        /// This load is the one that others join.
        case lead
        /// Not worth waiting: what came last could not be shared.
        case alone
    }

    /// Finds the place of a load that could lead.
    /// - Parameter mayPass: false lets it lead although what came last could not be shared.
    func enter(_ key: String, _ load: Load, mayPass: Bool = true) -> Place {
        state.withLock { state in
            // Not one that was given up, and not one from before an invalidation.
            if let leading = state.loads[key], leading.generation == load.generation, !leading.isGivenUp {
                return .join(leading)
            }
            if mayPass, state.passes.contains(key) { return .alone }
            state.loads[key] = load
            return .lead
        }
    }

    /// Takes a load out, so that nobody joins it any more.
    /// - Parameter isShareable: whether what came could answer others.
    func leave(_ key: String, _ load: Load, isShareable: Bool?) {
        state.withLock { state in
            if state.loads[key] === load { state.loads[key] = nil }
            switch isShareable {
            case true: state.passes.remove(key)
            case false:
                if state.passes.count >= Self.passLimit { state.passes.removeAll() }
                state.passes.insert(key)
            case nil: break
            }
        }
    }

    /// What came for a key can be stored again.
    func clearPass(_ key: String) { state.withLock { _ = $0.passes.remove(key) } }
}
