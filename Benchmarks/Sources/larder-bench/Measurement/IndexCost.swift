import Larder
import SystemPackage

/// What the index costs in addition to the bodies in it.
enum IndexCost {
    /// (allocated bytes of `index/data.mdb` - bytes of inline bodies) / entries. Keys, records, orders, digests, slack
    /// and free pages all count; the benchmarks put no metadata. Nil for an empty store.
    static func measure(_ path: FilePath) throws -> Double? {
        let store = try Store(at: path)
        let statistics = try store.statistics()
        var inlineBytes = statistics.storedBytes.bytes
        if statistics.fileCount > 0 {
            // Only the index knows which bodies are in it.
            inlineBytes = 0
            var seen: Set<Digest> = []
            try store.forEach { entry in
                if entry.isInline, seen.insert(entry.digest).inserted { inlineBytes += entry.storedLength.bytes }
            }
        }
        try store.close()
        guard statistics.entryCount > 0 else { return nil }
        return Double(statistics.indexBytes.bytes - inlineBytes) / Double(statistics.entryCount)
    }
}
