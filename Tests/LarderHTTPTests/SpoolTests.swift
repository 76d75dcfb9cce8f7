import Testing

@testable import LarderHTTP

/// A body that arrives, apart from what brings it.
struct SpoolTests {
    /// A thread that cancels a task holds the task's status lock while it runs the task's cancellation handler, which
    /// takes the lock of the spool. Resuming the task takes the same two locks: it must not hold the second by then.
    @Test func aReaderMayBeCancelledWhileItIsWoken() async {
        await withTaskGroup { group in
            for _ in 0..<8 {
                group.addTask {
                    for _ in 0..<2_000 { await Self.race() }
                }
            }
        }
    }

    private static func race() async {
        let spool = Spool(length: nil, sink: nil, isDetached: false, held: HeldBytes()) {}
        let readers = (0..<4).compactMap { _ in spool.makeReader() }
        let tasks = readers.map { reader in Task { try? await reader.next() } }
        // The readers may wait by now: if not, a race is missed.
        await Task.yield()
        let cancelling = Task { for task in tasks { task.cancel() } }
        await spool.append([1])
        await cancelling.value
        for task in tasks {
            let piece = await task.value
            #expect(piece == [1] || piece == nil)
        }
    }
}
