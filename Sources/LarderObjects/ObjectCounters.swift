import Locks

/// What a server has counted.
package final class ObjectCounters: Sendable {
    package let hits = Atomic<Int>(0)
    package let misses = Atomic<Int>(0)
    /// Results of actions that were there, but not all of their blobs.
    package let incompleteResults = Atomic<Int>(0)
    package let uploads = Atomic<Int>(0)
    package let uploadsWithoutRoom = Atomic<Int>(0)
}
