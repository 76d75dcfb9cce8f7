// What modules import in the place of `Synchronization`: they name a lock `Mutex`, whichever it is.
#if LARDER_VISIBLE_LOCKS
    @_exported import struct Synchronization.Atomic

    /// See `VisibleMutex`.
    public typealias Mutex = VisibleMutex

    /// The lock of the engine.
    public typealias EngineMutex = VisibleMutex
#else
    @_exported import Synchronization

    #if os(Linux)
        /// The lock of the engine: see `ForkSafeMutex`.
        public typealias EngineMutex = ForkSafeMutex
    #else
        /// The lock of the engine.
        public typealias EngineMutex = Mutex
    #endif
#endif
