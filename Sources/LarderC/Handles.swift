import Larder
import Locks

/// Something that C holds by a handle.
protocol Handled: AnyObject, Sendable {
    /// Tells its handles from those of other types. Odd, so that the address of an object, which is even, is never one.
    static var kind: UInt8 { get }
}

/// The handles that C has: numbers that look like pointers and lead to objects.
///
/// Each has the place in a table, and how often that place was used: a handle that was closed, or was never one, is
/// recognised, whatever the place holds by now. Looking one up takes two atomic operations and no lock.
enum Handles {
    /// A place in the table.
    private struct Slot: ~Copyable {
        /// From the high bits: 32 of the generation, 1 that is set while the handle is open, 31 of the threads that are
        /// looking it up. The object is released when the last 32 are 0.
        let state = Atomic<UInt64>(0)
        var object: Unmanaged<AnyObject>?
        var kind: UInt8 = 0
    }

    private final class Places: Sendable {
        let state: EngineMutex<(free: [Int], used: Int)>

        init(used: Int) { state = EngineMutex((free: [], used: used)) }
    }

    /// Handles that may be open at a time.
    private static let capacity = 1 << 20
    private static let open: UInt64 = 1 << 31

    // SAFETY: a slot is initialised under `places` before `count` covers it. Its `object` and `kind` are written by the
    // thread that owns it: one that took it from `places` and has not yet set `open`, or the one that left it last.
    // Others read them between `enter` and `leave`. The memory is never released.
    nonisolated(unsafe) private static let slots = UnsafeMutablePointer<Slot>.allocate(capacity: capacity)
    private static let count = Atomic<Int>(0)
    // SAFETY (both): written only in a child of fork(2), by its only thread.
    nonisolated(unsafe) private static var places = Places(used: 0)
    /// Places from before the latest fork, which this process cannot use: its parent's.
    nonisolated(unsafe) private static var inheritedCount = 0

    /// In a child of fork(2): leaves the objects of its parent as they are, without a release.
    static func beginAgain() {
        inheritedCount = count.load(ordering: .acquiring)
        // A thread that stayed behind may have held its lock.
        _ = Unmanaged.passRetained(places)
        places = Places(used: inheritedCount)
    }

    /// Does what `beginAgain` does with an object of its own: a child must not be the first to use a type.
    static func rehearse() { Unmanaged.passRetained(Places(used: 0)).release() }

    /// A new handle of `object`, which it keeps until it is closed.
    static func make<T: Handled>(_ object: T) throws(LarderError) -> OpaquePointer {
        guard let place = takePlace() else {
            throw LarderError(.tooLarge, "\(capacity) handles are open, which is the most: release some")
        }
        var generation = slots[place].state.load(ordering: .relaxed) >> 32 &+ 1
        if generation > UInt32.max { generation = 1 }
        slots[place].object = .passRetained(object)
        slots[place].kind = T.kind
        slots[place].state.store(generation << 32 | open, ordering: .releasing)
        let bits = UInt(generation) << 32 | UInt(place) << 8 | UInt(T.kind)
        guard let handle = OpaquePointer(bitPattern: bits) else { preconditionFailure("kinds are not 0") }
        return handle
    }

    /// The object of a handle.
    static func object<T: Handled>(_ handle: OpaquePointer?, _ type: T.Type = T.self) throws(LarderError) -> T {
        let (place, object) = try enter(handle, type)
        leave(place)
        return object
    }

    /// Closes a handle; returns the object to the only caller that does.
    static func close<T: Handled>(_ handle: OpaquePointer?, _ type: T.Type = T.self) throws(LarderError) -> T {
        let (place, object) = try enter(handle, type)
        defer { leave(place) }
        // The generation cannot change before this thread has left.
        let before = slots[place].state.bitwiseAnd(~open, ordering: .acquiringAndReleasing).oldValue
        if before & open == 0 { throw closed() }
        return object
    }

    private static func takePlace() -> Int? {
        places.state.withLock { places in
            if let place = places.free.popLast() { return place }
            guard places.used < capacity else { return nil }
            (slots + places.used).initialize(to: Slot())
            places.used += 1
            count.store(places.used, ordering: .releasing)
            return places.used - 1
        }
    }

    private static func enter<T: Handled>(
        _ handle: OpaquePointer?, _ type: T.Type
    ) throws(LarderError) -> (place: Int, object: T) {
        guard let handle else { throw LarderError(.invalidArgument, "the handle is NULL") }
        let bits = UInt64(UInt(bitPattern: handle))
        let place = Int(bits >> 8 & 0xFF_FFFF)
        guard UInt8(truncatingIfNeeded: bits) == T.kind, place < count.load(ordering: .acquiring) else {
            throw LarderError(.invalidArgument, "the handle is not one of the library, or of another type")
        }
        if place < inheritedCount { throw ForkedHandles.inherited }
        var state = slots[place].state.load(ordering: .relaxed)
        while true {
            guard state >> 32 == bits >> 32, state & open != 0 else { throw closed() }
            let (done, now) = slots[place].state.weakCompareExchange(
                expected: state, desired: state + 1, successOrdering: .acquiring, failureOrdering: .relaxed)
            if done { break }
            state = now
        }
        guard slots[place].kind == T.kind, let object = slots[place].object?.takeUnretainedValue() else {
            leave(place)
            throw LarderError(.invalidArgument, "the handle is of another type")
        }
        return (place, unsafeDowncast(object, to: T.self))
    }

    /// The last one to leave a closed slot releases what it held.
    private static func leave(_ place: Int) {
        let state = slots[place].state.wrappingSubtract(1, ordering: .acquiringAndReleasing).newValue
        guard state & 0xFFFF_FFFF == 0 else { return }
        let object = slots[place].object
        slots[place].object = nil
        places.state.withLock { $0.free.append(place) }
        object?.release()
    }

    private static func closed() -> LarderError { LarderError(.closed, "the handle was closed or released before") }
}
