#if LARDER_VISIBLE_LOCKS
    import VisibleLocks

    /// Hides the `Mutex` of `Synchronization` from this module: see `VisibleMutex`.
    typealias Mutex = VisibleMutex
#elseif os(Linux)
    import VisibleLocks

    /// Hides the `Mutex` of `Synchronization` from this module: see `ForkSafeMutex`.
    typealias Mutex = ForkSafeMutex
#endif
