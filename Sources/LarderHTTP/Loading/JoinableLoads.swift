import HTTPCaching
import HTTPTypes
import Locks

/// Loads that others may join, by key (RFC 9111 section 4: requests may be collapsed).
final class JoinableLoads: Sendable {
    private struct State {
        var loads: [String: Load] = [:]
        /// Loads that will be sent when the one before them is answered, for those who came after that one was sent.
        var next: [String: Load] = [:]
        /// Keys whose last response could not be stored: requests do not wait for the next one.
        var passes: Set<String> = []

        func leading(_ key: String, _ generation: UInt32) -> Load? { Self.usable(loads[key], generation) }
        func waiting(_ key: String, _ generation: UInt32) -> Load? { Self.usable(next[key], generation) }

        /// Not one that was given up, and not one from before an invalidation.
        private static func usable(_ load: Load?, _ generation: UInt32) -> Load? {
            load.flatMap { $0.generation == generation && !$0.isGivenUp ? $0 : nil }
        }
    }

    /// Stands between the key of a response and the range that is asked for. No URI has a space.
    static let rangeMark = " range="
    private static let passLimit = 4_096
    private let window: Duration
    private let now: @Sendable () -> Instant
    private let state = Mutex(State())

    /// - Parameters:
    ///   - window: how long after it was sent a load whose answer has not begun may be joined. As long as callers come
    ///     while others wait, a load that hangs does not end.
    ///   - now: the clock of the cache.
    init(window: Duration, now: @escaping @Sendable () -> Instant) {
        self.window = window
        self.now = now
    }

    private func isOverdue(_ load: Load) -> Bool {
        guard let sent = load.sentTime, !load.isAnswered else { return false }
        return .milliseconds(now().milliseconds - sent.milliseconds) >= window
    }

    enum Place {
        /// Another load asks already.
        case join(Load)
        /// This load is the one that others join.
        case lead
        /// This load is the one that others join, once the one before it is answered.
        case leadAfter(Load)
        /// Not worth waiting: what came last could not be shared.
        case alone
    }

    /// Finds the place of a load that could lead.
    /// - Parameters:
    ///   - mayPass: false lets it lead although what came last could not be shared.
    ///   - isLater: only a load that has not been sent yet may be joined.
    ///   - ofAnyAge: a load that hangs may be joined, too.
    func enter(
        _ key: String, _ load: Load, mayPass: Bool = true, isLater: Bool = false, ofAnyAge: Bool = false
    ) -> Place {
        state.withLock { state in
            var leading = state.leading(key, load.generation)
            if !ofAnyAge, let hanging = leading, isOverdue(hanging) { leading = nil }
            if let leading, !isLater || !leading.isSent { return .join(leading) }
            if mayPass, state.passes.contains(Self.passKey(key)) { return .alone }
            guard let leading else {
                state.loads[key] = load
                return .lead
            }
            if let waiting = state.waiting(key, load.generation), !waiting.isSent { return .join(waiting) }
            state.next[key] = load
            return .leadAfter(leading)
        }
    }

    /// The load that a request may join, if there is one.
    func leading(_ key: String, generation: UInt32) -> Load? {
        state.withLock { $0.leading(key, generation) }.flatMap { isOverdue($0) ? nil : $0 }
    }

    /// The load that will be sent when the one under way is answered, if there is one.
    func waiting(_ key: String, generation: UInt32) -> Load? { state.withLock { $0.waiting(key, generation) } }

    /// The one before it is answered: others join this one now.
    func promote(_ key: String, _ load: Load) {
        state.withLock { state in
            if state.next[key] === load { state.next[key] = nil }
            if !load.isGivenUp { state.loads[key] = load }
        }
    }

    /// Takes a load out, so that it is not joined any more.
    /// - Parameter isShareable: whether the response could answer others; nil if it says nothing about the next one.
    func leave(_ key: String, _ load: Load, isShareable: Bool?) {
        state.withLock { state in
            if state.loads[key] === load { state.loads[key] = nil }
            if state.next[key] === load { state.next[key] = nil }
            switch isShareable {
            case true: state.passes.remove(Self.passKey(key))
            case false:
                if state.passes.count >= Self.passLimit { state.passes.removeAll() }
                state.passes.insert(Self.passKey(key))
            case nil: break
            }
        }
    }

    /// Whether a request for a key is to go alone: what came last could not be stored, and there is no load to join.
    func isPass(_ key: String) -> Bool { state.withLock { $0.passes.contains(key) && $0.loads[key] == nil } }

    /// What came for a key can be stored again.
    func clearPass(_ key: String) { state.withLock { _ = $0.passes.remove(Self.passKey(key)) } }

    /// What can be stored of a response does not depend on the range.
    private static func passKey(_ key: String) -> String {
        // Most keys have no space at all.
        guard key.utf8.contains(UInt8(ascii: " ")), let mark = key.firstRange(of: rangeMark) else { return key }
        return String(key[..<mark.lowerBound])
    }
}
