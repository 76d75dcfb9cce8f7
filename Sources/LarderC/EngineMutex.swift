import VisibleLocks

#if LARDER_VISIBLE_LOCKS
    /// The lock of this module: see `VisibleMutex`.
    typealias EngineMutex = VisibleMutex
#elseif os(Linux)
    /// The lock of this module: see `ForkSafeMutex`.
    typealias EngineMutex = ForkSafeMutex
#else
    import Synchronization

    /// The lock of this module.
    typealias EngineMutex = Mutex
#endif
