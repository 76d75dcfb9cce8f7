import Locks

/// Buffers for bodies of files that are lent to a caller: a fresh one of a megabyte costs as much as reading into it,
/// as the kernel has to find and clear its pages.
final class BufferPool: Sendable, ProcessGlobal {
    // SAFETY: written only in a child of fork(2), by its only thread.
    nonisolated(unsafe) private(set) static var shared = BufferPool()

    static func prepare() { _ = shared }

    static func rehearse() {
        var other = BufferPool()
        replace(&other, with: BufferPool()).release()
    }

    static func beginAgain() { replace(&shared, with: BufferPool()) }

    /// Larger bodies get memory of their own.
    static let largest = 4 << 20
    private static let step = 1 << 20
    /// Buffers kept while they are not in use.
    private static let keptCount = 2

    private struct Buffers: @unchecked Sendable {
        // SAFETY: only inside an `EngineMutex`; a buffer is in the list or with one caller, which alone touches its
        // bytes.
        var free: [UnsafeMutableRawBufferPointer] = []
    }

    private let buffers = EngineMutex(Buffers())

    /// Runs `body` with a buffer of at least `count` bytes, at most `largest`, whose contents are undefined.
    func withBuffer<R>(_ count: Int, _ body: (UnsafeMutableRawBufferPointer) throws -> R) rethrows -> R {
        let buffer = take(count)
        defer { give(buffer) }
        return try body(buffer)
    }

    private func take(_ count: Int) -> UnsafeMutableRawBufferPointer {
        let kept = buffers.withLock { buffers in
            buffers.free.lastIndex { $0.count >= count }.map { buffers.free.remove(at: $0) }
        }
        // In steps, so that bodies of about the same length share buffers.
        return kept ?? .allocate(byteCount: (count + Self.step - 1) / Self.step * Self.step, alignment: 4096)
    }

    private func give(_ buffer: UnsafeMutableRawBufferPointer) {
        let surplus = buffers.withLock { buffers -> UnsafeMutableRawBufferPointer? in
            buffers.free.append(buffer)
            return buffers.free.count > Self.keptCount ? buffers.free.removeFirst() : nil
        }
        surplus?.deallocate()
    }
}
