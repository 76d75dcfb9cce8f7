import Failpoints
import Locks

/// Unlinks files in `trash/`, and staged files that were replaced before their commit, away from the threads that
/// commit and put: unlinking a file that has been written back costs about a millisecond on ext4, twenty for 64 MiB.
/// Its thread comes with the first file and stays: a process may have very many stores open that remove none.
final class Reaper: @unchecked Sendable {
    // SAFETY: all variables are touched only under `monitor`, but for `bytes`, which is atomic. `close()` joins the
    // thread, which refers to this without counting.
    private struct Item {
        let name: String
        let directory: Directory
        let bytes: Int64
    }

    private let trash: Directory
    private let ledger: Ledger
    private let monitor = Monitor()
    private var queue: [Item] = []
    /// Files that a power loss may still need; see `hold`.
    private var held: [Item] = []
    private var busy = 0
    private var isClosing = false
    private let bytes = Atomic<Int64>(0)

    /// Bytes of the files that wait to be unlinked.
    var queuedBytes: Int64 { bytes.load(ordering: .relaxed) }
    private var thread: WorkerThread?
    init(trash: Directory, ledger: Ledger) {
        self.trash = trash
        self.ledger = ledger
    }

    /// Sees to it that a thread works at the queue. Call it under `monitor`.
    /// - Returns: false if there is none, and there can be none: the caller works at it.
    private func wake() -> Bool {
        monitor.signal()
        if thread != nil || isClosing || queue.isEmpty { return true }
        thread = try? WorkerThread { [unowned self] in work() }
        return thread != nil
    }

    /// A transaction is about to move files to `trash/`: `drain` waits until `add` has named them.
    func expect() {
        monitor.locked { busy += 1 }
    }

    /// Queues files whose `bytes` stay in the ledger until they are gone; none if the transaction failed. Ends
    /// `expect`.
    func add(_ files: [(name: String, bytes: Int64)]) {
        bytes.wrappingAdd(files.reduce(0) { $0 + $1.bytes }, ordering: .relaxed)
        let isWorked = monitor.locked {
            queue += files.map { Item(name: $0.name, directory: trash, bytes: $0.bytes) }
            busy -= 1
            return wake()
        }
        if !isWorked { while step() {} }
    }

    /// Queues a file of another directory whose `bytes` stay in the ledger until it is gone. Does not wait, unless the
    /// thread has ended: then the caller unlinks it.
    func add(_ name: String, in directory: Directory, bytes count: Int64) {
        let item = Item(name: name, directory: directory, bytes: count)
        bytes.wrappingAdd(count, ordering: .relaxed)
        let isWorked: Bool? = monitor.locked {
            if isClosing { return nil }
            queue.append(item)
            return wake()
        }
        guard let isWorked else { return unlink(item) }
        if !isWorked { while step() {} }
    }

    /// As `add`, for files that a power loss may bring back into use: they are queued when the index is synced. Until
    /// then, and if the store is closed before, they stay in `trash/` for a sweep.
    func hold(_ files: [(name: String, bytes: Int64)]) {
        monitor.locked { held += files.map { Item(name: $0.name, directory: trash, bytes: $0.bytes) } }
        add([])
    }

    /// The index was synced: queues what was held.
    func releaseHeld() {
        let isWorked = monitor.locked {
            guard !held.isEmpty else { return true }
            bytes.wrappingAdd(held.reduce(0) { $0 + $1.bytes }, ordering: .relaxed)
            queue += held
            held = []
            return wake()
        }
        if !isWorked { while step() {} }
    }

    /// Waits until every queued file is gone, helping with it.
    func drain() {
        var isOver = false
        while !isOver {
            while step() {}
            isOver = monitor.locked {
                while busy > 0, queue.isEmpty { monitor.wait() }
                return busy == 0 && queue.isEmpty
            }
        }
    }

    /// Unlinks what is queued and ends the thread.
    func close() {
        drain()
        let last = monitor.locked {
            isClosing = true
            monitor.signal()
            return thread
        }
        last?.join()
    }

    private func work() {
        while true {
            while step() {}
            let isOver = monitor.locked {
                while queue.isEmpty, !isClosing { monitor.wait() }
                return isClosing && queue.isEmpty
            }
            if isOver { return }
        }
    }

    /// Unlinks one file; false if there is none.
    private func step() -> Bool {
        let item: Item? = monitor.locked {
            guard let item = queue.popLast() else { return nil }
            busy += 1
            return item
        }
        guard let item else { return false }
        unlink(item)
        monitor.locked {
            busy -= 1
            monitor.signal()
        }
        return true
    }

    private func unlink(_ item: Item) {
        // A file that cannot be unlinked stays in the ledger, and the next sweep tries again.
        failpoint("reap.before", at: item.directory.path.string)
        let isGone = (try? FileSystem.unlink(item.name, in: item.directory)) != nil
        failpoint("reap.unlinked", at: item.directory.path.string)
        if isGone { ledger.add(-item.bytes) }
        bytes.wrappingSubtract(item.bytes, ordering: .relaxed)
    }
}
