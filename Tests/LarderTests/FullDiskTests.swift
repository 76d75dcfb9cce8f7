import Locks
import SystemPackage
import TestSupport
import Testing

@testable import Larder

/// What calls do, and leave undone, where there is no room.
struct FullDiskTests {
    /// A process that was stopped in its turn is waited for once.
    @Test func aStoppedProcessIsWaitedForOnce() throws {
        try withDirectory { path in
            let directory = try Directory(path: path)
            let other = try FileSystem.open(".", in: directory, flags: O_RDONLY | O_DIRECTORY)
            _ = try FileSystem.lock(other, wait: false, path: path)
            let pauses = Atomic<Int>(0)
            let turn = ProcessTurn(directory) { pauses.wrappingAdd(1, ordering: .relaxed) }
            for _ in 0..<3 { turn.held {} }
            #expect(pauses.load(ordering: .relaxed) == ProcessTurn.limit)
            FileSystem.unlock(other)
            turn.held {}
            _ = try FileSystem.lock(other, wait: false, path: path)
            turn.held {}
            #expect(pauses.load(ordering: .relaxed) == 2 * ProcessTurn.limit)
        }
    }

    /// Displacing all entries that share a body frees it once, and nothing as long as a pinned one has it.
    @Test(arguments: [false, true]) func bodiesThatEntriesShareAreCountedOnce(_ isPinned: Bool) throws {
        let budget = Budget(bytes: .mebibytes(8), largestEntry: .mebibytes(7))
        try withStore(configuration: .testing(budget: budget)) { store in
            try store.put(body(3 << 20, 1), for: "pinned", PutOptions(isPinned: true))
            let shared = body(2 << 20, 2)
            for key: Key in ["a", "b", "c"] { try store.put(shared, for: key) }
            if isPinned { try store.put(shared, for: "d", PutOptions(isPinned: true)) }
            try store.flush()
            let keys = try store.keys()
            // Four MiB and more are free where the shared body can go, two where it cannot.
            try #expect(code { try store.put(body(11 << 19, 3), for: "large") } == .noSpace)
            try #expect(store.keys() == keys)
            let fits = body(isPinned ? 5 << 18 : 3 << 20, 4)
            try store.put(fits, for: "fits")
            try #expect(store.keys().contains("fits"))
        }
    }
}
