import SystemPackage

/// A way to store bodies under names on disk. All peers are driven by the same loops.
///
/// Calls come from several threads at once unless `maximumThreads` says otherwise.
protocol Peer: AnyObject, Sendable {
    /// The most threads that may call at once.
    var maximumThreads: Int { get }
    /// Makes the name that `put` and `get` need for body `index`: not timed.
    func name(_ index: Int) -> Name
    /// Stores a body, which need not survive a power loss.
    func put(_ body: [UInt8], _ name: Name) throws
    /// Stores a body; returns when it would survive a power loss.
    func putDurable(_ body: [UInt8], _ name: Name) throws
    /// Gets the bytes, in `scratch` or in newly allocated memory. Returns their number, or nil for a miss.
    func get(_ name: Name, _ scratch: Scratch) throws -> Int?
    /// Removes a body.
    func remove(_ name: Name) throws
    /// Finishes what `put` has begun: buffers are written. It counts as part of the time of the puts.
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

/// A thread's own memory for reading, reused for every body, as in a program that passes bytes on.
final class Scratch {
    /// Room for the longest body.
    let buffer: UnsafeMutableRawBufferPointer
    /// What a peer keeps for this thread from one call to the next.
    var held: AnyObject?

    /// Keeps the compiler from removing a read.
    private(set) var ends = 0

    init(_ bytes: Int) { buffer = .allocate(byteCount: max(bytes, 1), alignment: 4096) }

    deinit { buffer.deallocate() }

    /// Bytes that stay where they are.
    @inline(__always)
    func look(at bytes: UnsafeRawBufferPointer) -> Int {
        if let first = bytes.first, let last = bytes.last { ends &+= Int(first) &+ Int(last) }
        return bytes.count
    }

    /// Copies bytes. The result is shorter than the source only if the buffer is.
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
    /// Entries that a peer without a budget, and with tables that do not grow, makes room for.
    var entries = 2_000_000
}
