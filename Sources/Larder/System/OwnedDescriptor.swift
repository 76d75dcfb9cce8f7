import Locks

/// A file descriptor with one owner, which closes it when it is released.
final class OwnedDescriptor: Sendable {
    let raw: Int32
    /// Whether flock(2) has locked it: children of fork(2) close it.
    private let isLocked = Atomic<Bool>(false)

    init(_ raw: Int32) { self.raw = raw }

    /// In the place of one that is closed: every call with it fails with EBADF.
    static let none = OwnedDescriptor(-1)

    /// Call it before flock(2).
    func willLock() {
        if claimLock() { Fork.willLock(raw) }
    }

    /// True for the first that says it will be locked.
    func claimLock() -> Bool { !isLocked.exchange(true, ordering: .relaxed) }

    deinit {
        if raw < 0 { return }
        if isLocked.load(ordering: .relaxed) { Fork.closeLocked(raw) } else { close(raw) }
    }
}
