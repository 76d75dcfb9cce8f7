import Synchronization

/// The timed loops, the same for every peer.
///
/// Names and bodies are made a chunk at a time before the clock starts. A chunk of puts ends with a timed `settle()`,
/// so that a peer cannot do postponed work for free while the next chunk is made.
struct Driver: Sendable {
    let peer: any Peer
    let bodies: Bodies
    var threads = 1
    /// Records each operation's time, at 20 ns an operation.
    var recordsLatency = false
    /// Puts wait until the body survives the loss of power.
    var isDurable = false

    /// The most memory that prepared bodies take.
    private static let chunkBytes = 64 << 20
    private static let chunkNames = 100_000

    init(_ peer: any Peer, _ bodies: Bodies, threads: Int = 1) {
        self.peer = peer
        self.bodies = bodies
        self.threads = threads
    }

    /// Puts body (`index`, `version`) under name `index`, for each index. `body` gives another body for an index if
    /// set.
    func put(
        _ indices: some RandomAccessCollection<Int> & Sendable, version: Int = 0,
        body: (@Sendable (Int) -> [UInt8])? = nil
    ) throws -> Tally {
        var total = Tally()
        var rest = indices[...]
        while !rest.isEmpty {
            try Interruption.check()
            var items: [(Name, [UInt8])] = []
            var bytes = 0
            while bytes < Self.chunkBytes, items.count < Self.chunkNames, let index = rest.popFirst() {
                let bytesOfBody = body?(index) ?? bodies.body(index, version: version)
                bytes += bytesOfBody.count
                items.append((peer.name(index), bytesOfBody))
            }
            let chunk = items
            total.append(
                try timed(chunk.count) { position, _, tally in
                    let (name, body) = chunk[position]
                    if isDurable { try peer.putDurable(body, name) } else { try peer.put(body, name) }
                    tally.bytes += body.count
                } end: {
                    if !isDurable { try peer.settle() }
                })
        }
        return total
    }

    /// Gets the bodies under `indices`. Throws if one is missing, or if their lengths are not those of `version` (nil:
    /// any version), unless `mayMiss`.
    func get(
        _ indices: some RandomAccessCollection<Int> & Sendable, version: Int? = 0, mayMiss: Bool = false
    ) throws -> Tally {
        var total = Tally()
        var rest = indices[...]
        while !rest.isEmpty {
            try Interruption.check()
            let chunk = rest.prefix(Self.chunkNames).map { peer.name($0) }
            rest = rest.dropFirst(chunk.count)
            let tally = try timed(chunk.count) { position, scratch, tally in
                if let count = try peer.get(chunk[position], scratch) {
                    tally.bytes += count
                } else {
                    tally.misses += 1
                }
            }
            if tally.misses > 0, !mayMiss { throw BenchError("\(tally.misses) of \(chunk.count) bodies are not there") }
            total.append(tally)
        }
        if let version, !mayMiss {
            let expected = indices.reduce(0) { $0 + bodies.length($1, version: version) }
            guard total.bytes == expected else {
                throw BenchError("\(total.bytes) bytes were read where \(expected) were put")
            }
        }
        return total
    }

    /// Removes the bodies under `indices`.
    func remove(_ indices: some RandomAccessCollection<Int> & Sendable) throws -> Tally {
        let names = indices.map { peer.name($0) }
        return try timed(names.count) { position, _, _ in
            try peer.remove(names[position])
        } end: {
            try peer.settle()
        }
    }

    /// Runs `operation` for 0 ..< `count`, spread over the threads in contiguous parts, then `end`; all of it timed.
    func timed(
        _ count: Int, _ operation: @escaping @Sendable (Int, Scratch, inout Tally) throws -> Void,
        end: () throws -> Void = {}
    ) throws -> Tally {
        if threads == 1 {
            let scratch = Scratch(bodies.size.longest)
            var tally = recordsLatency ? Tally.recording : Tally()
            let start = Ticks.now()
            try loop(0..<count, scratch, &tally, operation)
            try end()
            tally.seconds = Double(Ticks.now() - start) / 1e9
            return tally
        }
        guard threads <= peer.maximumThreads else { throw BenchError("this peer is for one thread at a time") }
        let parts = Mutex<[(start: UInt64, end: UInt64, tally: Tally)]>([])
        let ready = Atomic<Int>(0)
        let threads = threads
        try Threads.run(threads) { number in
            let scratch = Scratch(bodies.size.longest)
            var tally = recordsLatency ? Tally.recording : Tally()
            let part = count * number / threads..<count * (number + 1) / threads
            ready.wrappingAdd(1, ordering: .sequentiallyConsistent)
            while ready.load(ordering: .sequentiallyConsistent) < threads { sched_yield() }
            let start = Ticks.now()
            try loop(part, scratch, &tally, operation)
            let end = Ticks.now()
            parts.withLock { $0.append((start, end, tally)) }
        }
        let settling = try Ticks.seconds(end)
        return parts.withLock { parts in
            var total = Tally()
            for part in parts { total.merge(part.tally) }
            let start = parts.map(\.start).min() ?? 0
            total.seconds = Double((parts.map(\.end).max() ?? 0) - start) / 1e9 + settling
            return total
        }
    }

    @inline(__always)
    private func loop(
        _ part: Range<Int>, _ scratch: Scratch, _ tally: inout Tally,
        _ operation: (Int, Scratch, inout Tally) throws -> Void
    ) throws {
        tally.operations += part.count
        guard recordsLatency else {
            for position in part { try operation(position, scratch, &tally) }
            return
        }
        var last = Ticks.now()
        for position in part {
            try operation(position, scratch, &tally)
            let now = Ticks.now()
            _ = tally.latency?.record(now - last)
            last = now
        }
    }
}
