// Measures what operations cost, in counts that do not depend on the machine, for the tests' upper bounds.
//
//     LarderEffort STORE
//
// Makes a second store beside it, STORE-batches.
//
// Prints one `<operation> <metric> <count>` a line:
//
// - `<operation> allocations`: of the calling thread, for each of 10,000 warm operations. Left out where they cannot be
//   counted.
// - `<operation> calls`: 0, as 10,000 warm operations made no system call at all. After any call the process is killed
//   before this line. Left out where the system cannot do that.
// - `put-<size> written`: bytes given to write calls for a byte of body put, 8 MiB of bodies of that size.
// - `put-<size> allocations`: of the calling thread, for each of these puts; the committer's are not among them.
// - `batch pages`: of 4 KiB, written for each of 200 puts of 100 bytes that share a commit, in a store of 20,000.
// - `mixed commits`: for 1,000 operations that come without a pause, nine hits to a put.
//
// Ends with `done`.

import CEffort
import Foundation
import Larder
import SystemPackage

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

func say(_ line: String) {
    let bytes = Array((line + "\n").utf8)
    _ = bytes.withUnsafeBytes { write(1, $0.baseAddress, $0.count) }
}

func body(_ length: Int, _ number: Int) -> [UInt8] {
    var state = UInt64(number) &* 0x9E37_79B9_7F4A_7C15 | 1
    return [UInt8](unsafeUninitializedCapacity: length) { buffer, count in
        for index in 0..<length {
            state ^= state << 13
            state ^= state >> 7
            state ^= state << 17
            buffer[index] = UInt8(truncatingIfNeeded: state)
        }
        count = length
    }
}

private let keys = (0..<256).map { Key("https://example.org/\($0)") }
private let missing = (0..<256).map { Key("https://example.org/missing/\($0)") }
private let rounds = 10_000

/// The operations that are measured, on a store with a body of 1 KiB under each key.
func operations(_ store: Store) -> [(name: String, run: (Int) throws -> Void)] {
    [
        (
            "get",
            { index in
                guard try store.get(keys[index & 255])?.body.length == ByteCount(1024) else { exit(2) }
            }
        ),
        (
            "withBody",
            { index in
                guard try store.withBody(of: keys[index & 255], { $0.byteCount }) == 1024 else { exit(2) }
            }
        ),
        (
            "contains",
            { index in
                guard try store.contains(keys[index & 255]) else { exit(2) }
            }
        ),
        (
            "miss",
            { index in
                guard try store.get(missing[index & 255]) == nil else { exit(2) }
            }
        ),
    ]
}

/// Bytes that this process gave to write calls. proc_pid_io(5), `wchar`.
func writtenBytes() -> Int? {
    guard let text = try? String(contentsOfFile: "/proc/self/io", encoding: .utf8) else { return nil }
    let line = text.split(separator: "\n").first { $0.hasPrefix("wchar: ") }
    return line.flatMap { Int($0.dropFirst(7)) }
}

@main
enum LarderEffort {
    static func main() throws {
        let path = FilePath(CommandLine.arguments[1])
        let clock = HoldingClock()
        var configuration = Larder.Configuration()
        configuration.clock = clock
        let store = try Store(at: path, configuration)
        for (index, key) in keys.enumerated() { try store.put(body(1024, index), for: key) }
        try store.flush()
        try countWrites(store)
        try countCommits(at: FilePath(path.string + "-batches"))
        try countReads(store, clock)
        say("done")
        exit(0)
    }

    private static func countWrites(_ store: Store) throws {
        for size in [1 << 10, 16 << 10, 1 << 20] {
            let count = (8 << 20) / size
            let bodies = (0..<count).map { body(size, $0 &* 31 &+ size) }
            guard let before = writtenBytes() else { break }
            let allocationsBefore = effort_allocations()
            for (index, body) in bodies.enumerated() {
                try store.put(body, for: Key("https://example.org/\(size)/\(index)"))
            }
            let allocations = effort_allocations() - allocationsBefore
            if effort_counts_allocations() {
                say("put-\(size >> 10)KiB allocations \(Double(allocations) / Double(count))")
            }
            try store.flush()
            if let after = writtenBytes() {
                say("put-\(size >> 10)KiB written \(Double(after - before) / Double(count * size))")
            }
        }
    }

    private static func countCommits(at path: FilePath) throws {
        var configuration = Larder.Configuration()
        // Only a flush commits, and a batch that is full.
        configuration.commitDelay = .seconds(3600)
        let store = try Store(at: path, configuration)
        func put(_ number: Int) throws {
            // In no order.
            let place = UInt64(number) &* 0x9E37_79B9_7F4A_7C15
            try store.put(body(100, number), for: Key("https://example.org/\(place)"))
        }
        let entries = 20_000
        for number in 0..<entries { try put(number) }
        try store.flush()
        let (batches, batch) = (10, 200)
        if let before = writtenBytes() {
            for number in 0..<batches * batch {
                try put(entries + number)
                if number % batch == batch - 1 { try store.flush() }
            }
            if let after = writtenBytes() {
                say("batch pages \(Double(after - before) / 4096 / Double(batches * batch))")
            }
        }
        let before = try store.statistics().counters.commits
        for number in 0..<10 * entries {
            if number % 10 == 0 {
                try put(2 * entries + number)
            } else {
                let place = UInt64(number % entries) &* 0x9E37_79B9_7F4A_7C15
                guard try store.get(Key("https://example.org/\(place)")) != nil else { exit(2) }
            }
        }
        try store.flush()
        say("mixed commits \(Double(try store.statistics().counters.commits - before) / Double(10 * entries) * 1000)")
    }

    private static func countReads(_ store: Store, _ clock: HoldingClock) throws {
        // On a separate thread, which may only read and write in the end. The rest of the process continues.
        var pair: [Int32] = [0, 0]
        guard pipe(&pair) == 0 else { exit(2) }
        let (input, output) = (pair[0], pair[1])
        let thread = Thread {
            let work = operations(store).map { (name: Array("\($0.name) calls 0\n".utf8), run: $0.run) }
            var isDone: UInt8 = 1
            do {
                for (_, run) in work { for index in 0..<rounds { try run(index) } }
                // A hit that meets the committer at a lock would wait for it, by a system call, and the first hit after
                // a commit may copy what it found. So nothing is left to commit, and the committer waits, without a
                // lock that a hit needs, until the process ends.
                try store.flush()
                clock.hold()
                for (_, run) in work { for index in 0..<rounds { try run(index) } }
                for (name, run) in operations(store) where effort_counts_allocations() {
                    let before = effort_allocations()
                    for index in 0..<rounds { try run(index) }
                    let count = effort_allocations() - before
                    say("\(name) allocations \(Double(count) / Double(rounds))")
                }
                if effort_forbid_system_calls() {
                    for (name, run) in work {
                        for index in 0..<rounds { try run(index) }
                        _ = name.withUnsafeBytes { write(1, $0.baseAddress, $0.count) }
                    }
                }
            } catch {
                isDone = 0
            }
            _ = write(output, &isDone, 1)
            // Ending the thread would be a system call.
            while true { _ = read(input, &isDone, 0) }
        }
        thread.stackSize = 8 << 20
        thread.start()

        var isDone: UInt8 = 0
        guard read(input, &isDone, 1) == 1, isDone == 1 else { exit(3) }
    }
}
