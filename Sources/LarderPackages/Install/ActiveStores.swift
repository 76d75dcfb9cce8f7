import Locks
import SystemPackage

/// The stores of this process whose packages are being changed: a claim of the store tells processes apart, not tasks.
enum ActiveStores {
    private static let paths = Mutex<Set<FilePath>>([])

    /// False if another task is there.
    static func enter(_ path: FilePath) -> Bool { paths.withLock { $0.insert(path).inserted } }

    static func leave(_ path: FilePath) { paths.withLock { _ = $0.remove(path) } }
}
