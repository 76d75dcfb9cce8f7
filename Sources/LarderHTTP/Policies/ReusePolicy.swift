import HTTPCaching
import HTTPTypes
import Locks

/// A policy of the caller: it decides only if a stored response may be used.
///
/// It neither loads nor stores; two values of one type with different settings can be used together under two ids.
public protocol ReusePolicy: Sendable {
    /// Decides about one stored response that matches the request. Throwing ends the fetch with
    /// ``FetchError/Code/policyFailed``.
    func reuse(_ stored: StoredResponse, for request: HTTPRequest, now: Instant) throws -> Reuse
}

/// The decision of a ``ReusePolicy``.
public enum Reuse: Sendable, Hashable {
    /// Use it, fresh or not.
    case use
    /// Do not use it: load, and store the new response.
    case load
    /// Follow RFC 9111.
    case followRules
}

/// Policies under the numbers by which requests name them: 0 to 99 belong to Larder, 100 and up to the caller.
public final class PolicyRegistry: Sendable {
    /// A registered policy.
    enum Entry: Sendable {
        /// As one of the built-in sets.
        case set(CachePolicy)
        case user(any ReusePolicy)

        func isUser<Policy: ReusePolicy>(of type: Policy.Type) -> Bool {
            if case .user(let policy) = self { return policy is Policy }
            return false
        }
    }

    /// Stored responses are neither read nor written.
    public static let noCache = 0
    /// Uses a stored response, fresh or not; otherwise loads.
    public static let cacheFirst = 1
    /// Always loads, and stores.
    public static let writeOnly = 2
    /// The lowest number for policies of the caller.
    public static let firstUserDefined = 100

    private let entries = Mutex<[Int: Entry]>([
        noCache: .set([.doNotRead, .doNotWrite]), cacheFirst: .set(.onlyLoadIfNotCached), writeOnly: .set(.doNotRead),
    ])

    /// A registry with the built-in policies.
    public init() {}

    /// Registers a policy; replaces any other under the number. Safe to call from any thread.
    ///
    /// - Parameters:
    ///   - policy: called on the thread or task of the request.
    ///   - id: its number in ``FetchOptions/policyID``; ``firstUserDefined`` or above.
    /// - Returns: false, and nothing changes, for a number below ``firstUserDefined``.
    @discardableResult
    public func register(_ policy: any ReusePolicy, id: Int) -> Bool {
        guard id >= Self.firstUserDefined else { return false }
        entries.withLock { $0[id] = .user(policy) }
        return true
    }

    /// Removes a policy of the caller. Safe to call from any thread.
    ///
    /// - Parameter id: the number it was registered under.
    /// - Returns: false if there was none.
    @discardableResult
    public func unregister(id: Int) -> Bool {
        guard id >= Self.firstUserDefined else { return false }
        return entries.withLock { $0.removeValue(forKey: id) != nil }
    }

    /// The policy of the caller under a number.
    ///
    /// - Parameter id: the number it was registered under.
    /// - Returns: nil for a number that is not in use, and for a built-in policy.
    public func policy(id: Int) -> (any ReusePolicy)? {
        guard case .user(let policy)? = entry(id) else { return nil }
        return policy
    }

    /// The numbers under which policies of a type are registered.
    ///
    /// - Parameter type: the exact type.
    /// - Returns: ascending; empty if there is none.
    public func ids<Policy: ReusePolicy>(of type: Policy.Type) -> [Int] {
        entries.withLock { $0.filter { $0.value.isUser(of: type) }.keys.sorted() }
    }

    /// Removes every policy of a type. Safe to call from any thread.
    ///
    /// - Parameter type: the exact type.
    /// - Returns: the numbers that became free, ascending.
    @discardableResult
    public func unregister<Policy: ReusePolicy>(_ type: Policy.Type) -> [Int] {
        entries.withLock { entries in
            let ids = entries.filter { $0.value.isUser(of: type) }.keys.sorted()
            for id in ids { entries[id] = nil }
            return ids
        }
    }

    /// The numbers in use, ascending.
    public var ids: [Int] { entries.withLock { $0.keys.sorted() } }

    func entry(_ id: Int) -> Entry? { entries.withLock { $0[id] } }
}
