import Foundation
import Larder
import SystemPackage

/// P8: bytes of the index for each entry, and resident memory beyond the mapping, with very many entries.
///
/// Index bytes: (allocated bytes of `index/data.mdb` - bytes of the bodies and keys) / entries. There is no metadata;
/// records, orders, second copies of keys, slack in pages and free pages all count.
/// Resident memory: `RssAnon` of a separate process that opens the store, gets 200,000 entries and puts 20,000.
enum P8Footprint: Target {
    static let id = "P8"

    static func run(_ context: TargetContext) throws -> [TargetRow] {
        let grown = try context.grown()
        let store = try Store(at: grown.large)
        let statistics = try store.statistics()
        try store.close()
        let bodies = statistics.storedBytes.bytes + Int64(statistics.entryCount * Name.bytes(0).count)
        func perEntry(_ bytes: ByteCount) -> Double { Double(bytes.bytes - bodies) / Double(statistics.entryCount) }
        let allocated = perEntry(statistics.indexBytes)
        let live = perEntry(statistics.liveIndexBytes)
        let entries = Render.count(statistics.entryCount)
        var rows = [
            TargetRow(
                id: id, measure: "index bytes per entry at \(entries) entries, keys and bodies subtracted", against: "",
                sense: .atMost, target: 240, reached: allocated, unit: " B", rounds: [allocated],
                detail: "\(Render.decimal(live, 0)) B without free pages")
        ]
        let probe = try ProbeCommand.measure(grown.large, entries: grown.largeCount, seed: context.seed)
        rows.append(
            TargetRow(
                id: id, measure: "resident memory beyond the mapping (RssAnon) at \(entries) entries", against: "",
                sense: .atMost, target: 48, reached: probe.anonymousBytes.map { Double($0) / 1_048_576 }, unit: " MiB",
                detail: "after \(Render.count(probe.gets)) gets and \(Render.count(probe.puts)) puts"))
        return rows
    }
}
