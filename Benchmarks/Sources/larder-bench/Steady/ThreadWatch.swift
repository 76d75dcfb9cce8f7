import Foundation
import Synchronization

/// What the threads of this process wait for, looked at every millisecond: `/proc/self/task/*/syscall`. Linux; empty
/// elsewhere.
final class ThreadWatch: Sendable {
    /// One look.
    private struct Look {
        var time: UInt64
        /// The system call of each thread, none where it runs.
        var calls: [Int: Int]
    }

    private let looks = Mutex<[Look]>([])
    private let isOver = Atomic<Bool>(false)
    private let thread = Mutex<UInt>(0)

    /// Starts.
    init() {
        let handle = try? Threads.start { [self] in watch() }
        #if !canImport(Darwin)
            let number = UInt(handle ?? 0)
            thread.withLock { $0 = number }
        #endif
    }

    /// Ends it.
    func stop() {
        isOver.store(true, ordering: .relaxed)
        #if !canImport(Darwin)
            let handle = thread.withLock { $0 }
            if handle != 0 { pthread_join(pthread_t(handle), nil) }
        #endif
    }

    /// What most threads beside `caller` waited for between two moments: the name of a system call, `work` where they
    /// did not wait, `scheduling` where none did anything.
    func cause(from start: UInt64, to end: UInt64, caller: Int) -> String {
        looks.withLock { looks in
            var counts: [String: Int] = [:]
            var index = looks.partitioningIndex { $0.time >= start }
            while index < looks.count, looks[index].time <= end {
                for (thread, call) in looks[index].calls where thread != caller {
                    if let name = Self.name(call) { counts[name, default: 0] += 1 }
                }
                index += 1
            }
            // A call that is under way says more than work beside it.
            let calls = counts.filter { $0.key != "work" }
            return (calls.isEmpty ? counts : calls).max { $0.value < $1.value }?.key ?? "scheduling"
        }
    }

    /// The id of the calling thread; 0 if it is not known. proc(5), `/proc/thread-self`.
    static func current() -> Int {
        let link = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/thread-self")
        return link.flatMap { $0.split(separator: "/").last }.flatMap { Int($0) } ?? 0
    }

    private func watch() {
        let own = Self.current()
        var threads: [Int] = []
        var rounds = 0
        while !isOver.load(ordering: .relaxed) {
            if rounds % 200 == 0 {
                threads =
                    (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task"))?.compactMap(Int.init)
                    ?? []
                threads.removeAll { $0 == own }
            }
            rounds += 1
            var look = Look(time: Ticks.now(), calls: [:])
            for thread in threads { look.calls[thread] = Self.call(of: thread) }
            let seen = look
            looks.withLock { $0.append(seen) }
            usleep(1000)
        }
    }

    /// The number of the system call that a thread is in; -1: it runs. proc_pid_syscall(5).
    private static func call(of thread: Int) -> Int? {
        let descriptor = open("/proc/self/task/\(thread)/syscall", O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        return withUnsafeTemporaryAllocation(byteCount: 32, alignment: 1) { buffer in
            let count = read(descriptor, buffer.baseAddress, buffer.count)
            guard count > 0 else { return nil }
            let text = String(decoding: buffer[..<count], as: UTF8.self)
            return text.hasPrefix("running") ? -1 : Int(text.prefix { $0 != " " })
        }
    }

    /// Nil for calls in which a thread only waits for another.
    private static func name(_ call: Int) -> String? {
        if call == -1 { return "work" }
        return waits.contains(call) ? nil : names[call] ?? "system call \(call)"
    }

    // Numbers of calls: <asm/unistd_64.h>, <asm-generic/unistd.h>.
    #if arch(x86_64)
        private static let waits: Set<Int> = [7, 23, 35, 202, 230, 232, 270, 271]
        private static let names = [
            0: "read", 1: "write", 17: "pread", 18: "write", 20: "write", 74: "fsync", 75: "fdatasync",
            77: "ftruncate", 257: "open", 263: "unlink", 264: "rename", 277: "sync_file_range", 285: "fallocate",
            296: "write", 306: "syncfs", 316: "rename",
        ]
    #else
        private static let waits: Set<Int> = [22, 73, 98, 101, 115]
        private static let names = [
            35: "unlink", 38: "rename", 46: "ftruncate", 47: "fallocate", 56: "open", 63: "read", 64: "write",
            66: "write", 67: "pread", 68: "write", 70: "write", 82: "fsync", 83: "fdatasync", 84: "sync_file_range",
            267: "syncfs", 276: "rename",
        ]
    #endif
}

extension Array {
    /// The first index whose element is in the second part; the elements are in order.
    fileprivate func partitioningIndex(_ isSecond: (Element) -> Bool) -> Int {
        var (low, high) = (0, count)
        while low < high {
            let middle = (low + high) / 2
            if isSecond(self[middle]) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}
