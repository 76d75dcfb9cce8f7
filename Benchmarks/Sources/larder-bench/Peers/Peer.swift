import SystemPackage

/// A way to keep bodies under names on a disk. Every one is driven by the same loops.
///
/// Calls come from several threads at once unless `maximumThreads` says otherwise.
protocol Peer: AnyObject, Sendable {
    /// The most threads that may call at once.
    var maximumThreads: Int { get }
    /// Makes what `put` and `get` want for body `index`: not timed.
    func name(_ index: Int) -> Name
    /// Stores a body; need not survive the loss of power.
    func put(_ body: [UInt8], _ name: Name) throws
    /// Stores a body; returns when it survives the loss of power.
    func putDurable(_ body: [UInt8], _ name: Name) throws
    /// Brings the bytes into the caller's hand, in `scratch` or as memory of their own; their number, or nil for a miss.
    func get(_ name: Name, _ scratch: Scratch) throws -> Int?
    /// Takes a body away.
    func remove(_ name: Name) throws
    /// Ends what `put` has begun: buffers are written. Part of the time of the puts.
    func settle() throws
    /// Closes it.
    func close() throws
}

extension Peer {
    var maximumThreads: Int { .max }
    func putDurable(_ body: [UInt8], _ name: Name) throws { throw BenchError("this peer has no durable puts") }
    func settle() throws {}
    func close() throws {}
}

/// A thread's own memory for reading, reused for every body, as a program does that hands bytes on.
final class Scratch {
    /// Room for the longest body.
    let buffer: UnsafeMutableRawBufferPointer
    /// What a peer keeps for this thread from one call to the next.
    var held: AnyObject?

    /// Keeps the compiler from leaving a look away.
    private(set) var ends = 0

    init(_ bytes: Int) { buffer = .allocate(byteCount: max(bytes, 1), alignment: 4096) }

    deinit { buffer.deallocate() }

    /// Bytes that stay where they are.
    @inline(__always)
    func look(at bytes: UnsafeRawBufferPointer) -> Int {
        if let first = bytes.first, let last = bytes.last { ends &+= Int(first) &+ Int(last) }
        return bytes.count
    }

    /// Bytes brought in the way of a copy. Shorter than the source only if the buffer is.
    @inline(__always)
    func take(_ bytes: UnsafeRawBufferPointer) -> Int {
        let count = min(bytes.count, buffer.count)
        buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[..<count]))
        return count
    }
}

/// How a peer is opened.
struct PeerOptions: Sendable {
    /// Bytes it may take; nil: no limit.
    var budgetBytes: Int64?
}
