import CLarder

/// The handling of a parent's open stores in a child of fork(2): the child uses none of them.
///
/// Their threads stay behind in the parent, and every lock stays as it was at that moment. So the child leaves all
/// objects of its parent as they are, without releasing them, and begins with empty globals: it can open its own
/// stores. It closes the files that flock(2) has locked. Such a lock ends with the last copy of its descriptor, so a
/// parent that died would look alive for as long as its child lives.
package enum Fork {
    private static let monitor = Monitor()
    // SAFETY: touched under `monitor`, which a fork holds, and by the only thread of a child.
    nonisolated(unsafe) private static var locked: Set<Int32> = []
    nonisolated(unsafe) private static var handlers: [@Sendable () -> Void] = []

    /// Registers what happens at a fork, once. pthread_atfork(3).
    private static let isWatching: Bool = {
        // A child cannot wait for a thread of its parent that makes one of these at the moment of the fork, or one of
        // the types that the child uses first.
        for global in globals {
            global.prepare()
            global.rehearse()
        }
        monitor.locked {
            for _ in locked {}
            for _ in handlers {}
        }
        return pthread_atfork({ Fork.prepare() }, { Fork.resume() }, { Fork.begin() }) == 0
    }()

    /// The calls first: the engine's threads come to rest when they are over.
    private static func prepare() {
        FirstCalls.wait()
        FirstRounds.wait()
        monitor.lock()
    }

    /// In the parent.
    private static func resume() {
        monitor.unlock()
        FirstCalls.goOn()
    }

    private static var globals: [any ProcessGlobal.Type] {
        [
            Registry.self, IOPool.self, DigestWorker.self, BufferPool.self, ComputationWaits.self, SharedStore.self,
            MemoryPressure.self, HeldKinds.self,
        ]
    }

    /// Has to come before the first store is opened by a program that may fork.
    /// - Parameter inChild: called in each child, by its only thread, before fork(2) returns.
    package static func watch(inChild: @escaping @Sendable () -> Void) throws(LarderError) {
        if !isWatching { throw LarderError(.noSpace, "pthread_atfork(3) has no memory for a handler") }
        monitor.locked { handlers.append(inChild) }
    }

    /// Opens a file that is going to be locked. A fork does not come between the two, or the child would have a copy
    /// that it does not know of.
    static func openToLock(
        _ open: () throws(LarderError) -> OwnedDescriptor?
    ) throws(LarderError) -> OwnedDescriptor? {
        _ = isWatching
        monitor.lock()
        defer { monitor.unlock() }
        guard let descriptor = try open() else { return nil }
        if descriptor.claimLock() { locked.insert(descriptor.raw) }
        return descriptor
    }

    /// As above, of a file that is there or made.
    static func openToLock(
        _ open: () throws(LarderError) -> OwnedDescriptor
    ) throws(LarderError) -> OwnedDescriptor {
        _ = isWatching
        monitor.lock()
        defer { monitor.unlock() }
        let descriptor = try open()
        if descriptor.claimLock() { locked.insert(descriptor.raw) }
        return descriptor
    }

    /// A descriptor is about to be locked. Without memory for the handler the lock is as good as ever, if no one forks.
    static func willLock(_ descriptor: Int32) {
        _ = isWatching
        monitor.locked { _ = locked.insert(descriptor) }
    }

    /// Closes a descriptor that was locked. Under the lock: its number may have another use a moment later.
    static func closeLocked(_ descriptor: Int32) {
        monitor.locked {
            locked.remove(descriptor)
            close(descriptor)
        }
    }

    /// In the child, which holds `monitor`.
    private static func begin() {
        clarder_forget_thread()
        FirstCalls.beginAgain()
        FirstRounds.beginAgain()
        for descriptor in locked { close(descriptor) }
        locked = []
        monitor.unlock()
        for global in globals { global.beginAgain() }
        for handler in handlers { handler() }
    }
}

/// State of the process that a child of fork(2) does not take over.
protocol ProcessGlobal {
    /// Makes the state. Called before any fork.
    static func prepare()

    /// Does what `beginAgain` does with objects of its own.
    static func rehearse()

    /// Makes it again, as in a new process, and leaves the old one as it is: a release may wait for a thread that
    /// stayed behind.
    static func beginAgain()
}

extension ProcessGlobal {
    /// Puts a new object in the place of an old one, which is not released unless the caller does it.
    @discardableResult
    static func replace<T: AnyObject>(_ object: inout T, with new: T) -> Unmanaged<T> {
        let old = Unmanaged.passRetained(object)
        object = new
        return old
    }
}
