#if LARDER_VISIBLE_LOCKS
    import VisibleLocks

    /// Hides the `Mutex` of `Synchronization` from this module: see `VisibleMutex`.
    typealias Mutex = VisibleMutex
#endif
