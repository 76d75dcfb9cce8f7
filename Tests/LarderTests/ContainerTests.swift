import SystemPackage
import TestSupport
import Testing

@testable import Larder

/// Processes in PID namespaces of their own, each the one with id 1: LMDB tells readers by their process id.
@Suite(.enabled(if: Worker.canContain, "needs root on Linux, and unshare(1)"), .serialized)
struct ContainerTests {
    private func isHeld(_ store: Store) throws -> Bool {
        // A later commit, which the snapshot of a reader does not see.
        try store.put([1], for: "later")
        try store.flush()
        return try store.engine.index.environment.isSnapshotHeld()
    }

    @Test func aSecondProcessWithTheSameIdIsRefusedWithAReason() throws {
        try withDirectory { path in
            let store = try Store(at: path, .testing())
            try store.put([7], for: "held")
            try store.flush()
            let first = try Worker(store: path.string, mode: "hold", seed: 0, count: 0, isContained: true)
            first.waitUntilReady()
            let second = try Worker(store: path.string, mode: "count", seed: 0, count: 0, isContained: true)
            let lines = second.finish()
            #expect(lines.count == 1)
            #expect(lines.first?.hasPrefix("BAD locked: ") ?? false, "\(lines)")
            #expect(lines.first?.contains("by a process with the same process id (1)") ?? false, "\(lines)")
            first.kill()
            _ = first.finish()
            try finish(store)
        }
    }

    @Test func theRowsOfAKilledProcessGoWhenItsIdIsUsedAgain() throws {
        try withDirectory { path in
            let store = try Store(at: path, .testing())
            try store.put([7], for: "held")
            try store.flush()
            let killed = try Worker(store: path.string, mode: "hold", seed: 0, count: 0, isContained: true)
            killed.waitUntilReady()
            // Until it is inside: it says so in a second line, which is read with the rest.
            var isInside = false
            for _ in 0..<10_000 where !isInside { isInside = try isHeld(store) }
            try #require(isInside)
            // No process of this one's namespace looks from now on, and the file stays open, which keeps the row.
            let keeper = try Worker(store: path.string, mode: "idle", seed: 0, count: 0)
            keeper.waitUntilReady()
            try store.close()
            killed.kill()
            _ = killed.finish()
            // While it lives: LMDB frees all rows with its id when it closes the file.
            let next = try Worker(store: path.string, mode: "idle", seed: 0, count: 0, isContained: true)
            next.waitUntilReady()
            let again = try Store(at: path, .testing())
            try #expect(!isHeld(again))
            for worker in [next, keeper] {
                worker.kill()
                _ = worker.finish()
            }
            try finish(again)
        }
    }
}
