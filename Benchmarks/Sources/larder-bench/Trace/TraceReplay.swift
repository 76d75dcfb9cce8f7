import Larder
import Synchronization
import SystemPackage

/// P11: replays a trace against a real store, and compares its misses with those of exact LRU.
///
/// The store chooses every victim, by its own access order. But it counts the bytes that it allocates, not those that a
/// trace names, so the replay counts the latter: objects are entries with a body of one byte, and the replay knows
/// their sizes. Where the simulator would displace until the new object fits, the replay lowers the store's entry
/// budget until the store has displaced that much. Each request is flushed, so that touches are in the index before the
/// next one.
struct TraceReplay {
    let trace: TraceFile
    /// Bytes.
    let capacity: Int

    /// Misses over requests: counted, and weighted by size.
    struct MissRatio {
        var byObject: Double
        var byByte: Double
        var displaced: Int
    }

    /// What the observer, which runs on the store's threads, reports to the replay.
    private final class Gone: Sendable {
        let keys = Mutex<[Key]>([])
        func take() -> [Key] {
            keys.withLock { keys in
                defer { keys = [] }
                return keys
            }
        }
    }

    func run(_ path: FilePath) throws -> MissRatio {
        let gone = Gone()
        var configuration = Configuration()
        configuration.observer = { event in
            if case .displaced(let key, _, _) = event { gone.keys.withLock { $0.append(key) } }
        }
        let store = try Store(at: path, configuration)
        defer { try? store.close() }
        var sizes: [Key: Int] = [:]
        var used = 0
        var misses = 0
        var missedBytes = 0
        var bytes = 0
        var displaced = 0
        func settle() {
            for key in gone.take() {
                used -= sizes.removeValue(forKey: key) ?? 0
                displaced += 1
            }
        }
        for (position, request) in trace.requests.enumerated() {
            if position % 64 == 0 { try Interruption.check() }
            let key = Key(bytes: withUnsafeBytes(of: request.object.bigEndian) { Array($0) })
            bytes += request.size
            if try store.get(key) != nil {
                // The touch is written before anything is displaced or touched again.
                try store.flush()
                continue
            }
            misses += 1
            missedBytes += request.size
            if request.size > capacity { continue }
            while used + request.size > capacity {
                try store.setBudget(Budget(entries: max(1, sizes.count - 1)))
                settle()
            }
            if try store.budget().entries <= sizes.count { try store.setBudget(.unlimited) }
            try store.put([UInt8(truncatingIfNeeded: request.object)], for: key)
            try store.flush()
            sizes[key] = request.size
            used += request.size
            settle()
        }
        return MissRatio(
            byObject: Double(misses) / Double(trace.requests.count), byByte: Double(missedBytes) / Double(bytes),
            displaced: displaced)
    }

    /// The same by exact LRU in memory: a list in the order of use, as a dictionary of ticks.
    func exact() -> MissRatio {
        var entries: [UInt64: (size: Int, tick: Int)] = [:]
        // Uses in order; one whose tick is no longer the entry's has been overtaken.
        var uses: [(object: UInt64, tick: Int)] = []
        var oldest = 0
        var used = 0
        var result = (misses: 0, missedBytes: 0, bytes: 0, displaced: 0)
        for (tick, request) in trace.requests.enumerated() {
            result.bytes += request.size
            if entries[request.object] != nil {
                entries[request.object]?.tick = tick
                uses.append((request.object, tick))
                continue
            }
            result.misses += 1
            result.missedBytes += request.size
            if request.size > capacity { continue }
            while used + request.size > capacity {
                let use = uses[oldest]
                oldest += 1
                guard let entry = entries[use.object], entry.tick == use.tick else { continue }
                used -= entry.size
                entries[use.object] = nil
                result.displaced += 1
            }
            entries[request.object] = (request.size, tick)
            uses.append((request.object, tick))
            used += request.size
        }
        return MissRatio(
            byObject: Double(result.misses) / Double(trace.requests.count),
            byByte: Double(result.missedBytes) / Double(result.bytes), displaced: result.displaced)
    }
}
