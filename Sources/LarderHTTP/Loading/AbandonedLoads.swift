import Locks

/// The policy for loads whose last reader has left (``HTTPCacheConfiguration/abandonedLoads``). Loads continue if they
/// are nearly done, so that the bytes already received are not wasted, or if other processes may follow them and could
/// not continue them, because the response has no strong validator. Where a range was widened to slices
/// (``HTTPCacheConfiguration/sliceBytes``), a load is nearly done when no more than a slice is missing: its client
/// asked for less, and the rest is for others. The other loads are given up; the bytes that they received stay as a
/// part if the response has a strong validator.
public struct AbandonedLoadPolicy: Sendable, Hashable {
    /// A load continues if no more than this many bytes are missing. Default: 1 MiB.
    public var restBytes: Int64
    /// It also continues if no more than this part of its length is missing, in percent, 0...100. Default: 25.
    public var restPercent: Int64
    /// The most loads that continue at the same time. Default: 64; 0 gives all of them up.
    public var limit: Int

    /// Makes a policy. Each parameter sets the property of its name, and has the default that the property states.
    public init(restBytes: Int64 = 1 << 20, restPercent: Int64 = 25, limit: Int = 64) {
        self.restBytes = restBytes
        self.restPercent = restPercent
        self.limit = limit
    }

    /// Every load ends with its last reader.
    public static let none = AbandonedLoadPolicy(limit: 0)
}

/// The loads that continue without a reader.
final class AbandonedLoads: Sendable {
    private let policy: AbandonedLoadPolicy
    private let count = Mutex(0)

    init(_ policy: AbandonedLoadPolicy) { self.policy = policy }

    /// Takes a load in, if it is nearly done or `isIndispensable`, and there is a place.
    /// - Parameters:
    ///   - length: nil if it is not known.
    ///   - usefulRest: it is nearly done, too, when no more bytes than these are missing.
    func takes(length: Int64?, received: Int64, usefulRest: Int64, isIndispensable: Bool) -> Bool {
        var isNearlyDone = false
        if let length {
            let rest = length - received
            isNearlyDone =
                rest <= max(policy.restBytes, usefulRest)
                || Double(rest) * 100 <= Double(length) * Double(policy.restPercent)
        }
        guard isIndispensable || isNearlyDone else { return false }
        return count.withLock { count in
            guard count < policy.limit else { return false }
            count += 1
            return true
        }
    }

    /// A load that was taken in is over.
    func release() { count.withLock { $0 -= 1 } }
}
