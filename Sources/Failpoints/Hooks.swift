// What the engine calls where something can be made to fail. In a release build each function is empty, and inlined away
// with its arguments: neither a branch nor a name is left (`tools/check-release` looks).

/// What a call that can fail is made to do instead.
public enum InjectedFault: Sendable, Hashable {
    /// To fail with this `errno` or LMDB code, without being made.
    case failure(Int32)
    /// To transfer only a part of the bytes.
    case short
}

/// A named step: a process can be made to end here by SIGKILL.
/// - Parameter place: the path of the store, for faults that are meant for one store only.
@inlinable
@inline(__always)
public func failpoint(_ name: StaticString, at place: @autoclosure () -> String) {
    #if LARDER_FAILPOINTS
        if Failpoints.isActive { Failpoints.reach(name, at: place()) }
    #endif
}

/// What the call `name` on the file or directory `place` is made to do; nil: what it always does.
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
