import CachectlCore
import Larder
import SystemPackage

/// The budget that a gateway sets in a store without one: a cache that fills the disk stops caching, and breaks the
/// machine's other programs.
enum DefaultBudget {
    /// Sets the budget to 80 % of the sum of the store's size and the free disk space, unless there is a budget.
    /// - Parameter given: the budget that the user set, which is kept, even `unlimited`.
    /// - Returns: true if it set the budget.
    static func set(in store: Store, unless given: ByteCount?) throws -> Bool {
        let statistics = try store.statistics()
        guard given == nil, statistics.budget.bytes == .unlimited else { return false }
        let available = try freeBytes(store.path) + statistics.allocatedBytes.bytes
        try store.setByteBudget(max(ByteCount(available / 5 * 4), Budget.minimumBytes))
        return true
    }

    /// The bytes that an unprivileged process may still allocate. statvfs(3)
    private static func freeBytes(_ path: FilePath) throws -> Int64 {
        var status = statvfs()
        guard path.withPlatformString({ statvfs($0, &status) }) == 0 else { throw CommandError.system("statvfs", path) }
        return Int64(
            clamping: UInt64(status.f_bavail).multipliedReportingOverflow(by: UInt64(status.f_frsize)).partialValue)
    }
}
