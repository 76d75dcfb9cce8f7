import CachectlCore
import Larder
import SystemPackage

/// The budget that a gateway gives a store without one: a cache that grows until the disk is full stops caching, and takes
/// the machine's other programs with it.
enum DefaultBudget {
    /// Sets the budget to 80 % of what the store has and the disk has free. Returns true if it did.
    /// - Parameter given: what the user set; nothing is changed then, also where that is `unlimited`.
    static func set(in store: Store, unless given: ByteCount?) throws -> Bool {
        let statistics = try store.statistics()
        guard given == nil, statistics.budget.bytes == .unlimited else { return false }
        let available = try freeBytes(store.path) + statistics.allocatedBytes.bytes
        try store.setByteBudget(max(ByteCount(available / 5 * 4), Budget.minimumBytes))
        return true
    }

    /// statvfs(3): bytes that an unprivileged process may still allocate.
    private static func freeBytes(_ path: FilePath) throws -> Int64 {
        var status = statvfs()
        guard path.withPlatformString({ statvfs($0, &status) }) == 0 else { throw CommandError.system("statvfs", path) }
        return Int64(
            clamping: UInt64(status.f_bavail).multipliedReportingOverflow(by: UInt64(status.f_frsize)).partialValue)
    }
}
