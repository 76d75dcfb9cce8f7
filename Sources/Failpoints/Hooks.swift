// The engine calls these functions where something can be made to fail. In a release build each function is empty, and
// inlined away with its arguments: neither a branch nor a name remains (`tools/check-failpoints` verifies that).

/// The effect of a fault on a call, in place of its work.
public enum InjectedFault: Sendable, Hashable {
    /// Fail with this `errno` or LMDB code, without making the call.
    case failure(Int32)
    /// Transfer only a part of the bytes.
    case short
}

/// A named step, at which a rule can end the process by SIGKILL.
/// - Parameter place: the path of the store, for faults that are meant for one store only.
@inlinable
@inline(__always)
public func failpoint(_ name: StaticString, at place: @autoclosure () -> String) {
    #if LARDER_FAILPOINTS
        if Failpoints.isActive { Failpoints.reach(name, at: place()) }
    #endif
}

/// The fault for the call `name` on the file or directory `place`; nil if it is to work normally.
@inlinable
@inline(__always)
public func injectedFault(_ name: StaticString, at place: @autoclosure () -> String) -> InjectedFault? {
    #if LARDER_FAILPOINTS
        return Failpoints.isActive ? Failpoints.fault(name, at: place()) : nil
    #else
        return nil
    #endif
}

/// As above, for a call on an open file.
@inlinable
@inline(__always)
public func injectedFault(_ name: StaticString, on descriptor: Int32) -> InjectedFault? {
    #if LARDER_FAILPOINTS
        return Failpoints.isActive ? Failpoints.fault(name, at: Failpoints.path(of: descriptor)) : nil
    #else
        return nil
    #endif
}
