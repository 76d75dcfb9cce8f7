import ArgumentParser
import CachectlCore
import Larder
import LarderHTTP

/// `stat [KEY]`: the size of a store, or the attributes of an entry.
struct StatCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stat",
        abstract: "Show the size and activity of the store, or the attributes of an entry.",
        discussion:
            "Exits 1 if there is no entry under KEY. Does not change the store, and does not count as an access.")

    @OptionGroup var options: StoreOptions

    @Argument(help: "Key of an entry.", transform: { Key($0) })
    var key: Key?

    func run() throws {
        try options.withStore(.reading) { store in
            if let key {
                let key = try StoredKeys.resolved(key, in: store)
                guard let attributes = try store.attributes(of: key) else {
                    throw CommandError.missing(key)
                }
                let variants = try StoredVariants(attributes, in: store)
                let versions = try VersionNames(of: store)
                try options.print(
                    EntryJSON(attributes, versions), orText: Self.table(attributes, variants, versions))
            } else {
                let statistics = try store.statistics()
                let identity = (store.path.string, store.identifier)
                try options.print(
                    StatisticsJSON(
                        statistics, path: identity.0, identifier: identity.1, isEncrypted: store.isEncrypted),
                    orText: Self.table(statistics, path: identity.0, isEncrypted: store.isEncrypted))
            }
        }
    }

    static func table(_ statistics: Statistics, path: String, isEncrypted: Bool) -> String {
        let budget = statistics.budget
        var table = Table([.left, .left])
        table.add("store", path + (isEncrypted ? ", encrypted" : ""))
        table.add("entries", Render.count(statistics.entryCount))
        table.add("bodies", "\(Render.count(statistics.blobCount)) (\(Render.count(statistics.fileCount)) in files)")
        table.add("logical", Render.exactSize(statistics.logicalBytes))
        table.add("stored", Render.exactSize(statistics.storedBytes))
        table.add("saved by sharing", Render.exactSize(statistics.savedBytes))
        if statistics.compressionGain > .zero {
            table.add("saved by compression", Render.exactSize(statistics.compressionGain))
        }
        table.add("allocated", Render.exactSize(statistics.allocatedBytes))
        table.add("index", "\(Render.exactSize(statistics.indexBytes)), \(statistics.liveIndexBytes) of it in use")
        var limit = Render.exactSize(budget.bytes)
        if budget.bytes != .unlimited {
            limit += ", \(Render.percent(statistics.allocatedBytes.bytes, of: budget.bytes.bytes)) taken"
        }
        table.add("budget", limit)
        CountersTable.add(statistics.counters, to: &table)
        return table.text
    }

    private static func table(_ entry: Attributes, _ variants: StoredVariants?, _ versions: VersionNames) -> String {
        var table = Table([.left, .left])
        table.add("key", entry.key.text)
        table.add("digest", entry.digest.hexadecimal)
        table.add("length", Render.exactSize(entry.length))
        table.add(
            "stored",
            "\(entry.storedLength) in \(entry.isInline ? "the index" : "its own file"), \(entry.encoding)")
        table.add("shared by", Render.count(entry.references ?? 1, "entry", "entries"))
        table.add("created", "\(entry.created)")
        table.add("put", "\(entry.stored)")
        table.add("last use", "\(entry.lastAccess), \(Render.count(entry.hitCount, "hit", "hits"))")
        table.add("expires", (entry.expires ?? .distantFuture).description)
        table.add("policy", "\(entry.storagePolicy)" + (entry.isPinned ? ", pinned" : ""))
        for lease in entry.leases ?? [] { table.add("lease", describe(lease)) }
        table.add("tags", entry.tags.joined(separator: ", "))
        table.add("version", versions[entry.version] ?? "none")
        table.add("metadata", "\(Render.count(entry.metadata.count)) bytes")
        if let response = ResponseSummary(entry) { describe(response, in: &table) }
        if let variants {
            table.add("variants", Render.count(variants.variants.count))
            for variant in variants.variants {
                table.add("variant \(variant.number)", "\(variant.text), \(variant.entry.shownSize())")
            }
        }
        return table.text
    }

    private static func describe(_ lease: ActiveLease) -> String {
        let subject =
            switch lease.subject {
            case .key: "of the key"
            case .tag(let tag): "of the tag \(Key(tag).text)"
            case .content: "of the content"
            }
        let holder =
            switch lease.holder {
            case .process: ", held by a process"
            case .endedProcess: ", held by a process that has ended"
            case .timeOnly: ""
            }
        return "\(subject), until \(lease.expires)\(holder)"
    }

    private static func describe(_ response: ResponseSummary, in table: inout Table) {
        table.add("url", response.url)
        if !response.variant.isEmpty { table.add("variant", response.variant.joined(separator: ", ")) }
        table.add("status", "\(response.status)")
        let fresh = response.freshSeconds
        table.add(
            "freshness",
            (fresh > 0 ? "fresh for \(fresh) s" : "stale for \(-fresh) s") + ", age \(response.ageSeconds) s"
                + (response.needsValidation ? ", needs validation before use" : ""))
        table.add("validators", [response.entityTag, response.lastModified].compactMap(\.self).joined(separator: ", "))
        if !response.isComplete {
            let stored = response.storedBytes.map { ", \(Render.count($0))" } ?? ","
            table.add(
                "complete",
                "no\(stored) of \(response.totalBytes.map { Render.count($0) } ?? "an unknown number of") bytes")
            // As in `Range`: the last position is part of it.
            let ranges = (response.storedRanges ?? []).map { "\($0.lowerBound)-\($0.upperBound - 1)" }
            let left = ranges.count > 8 ? " and \(Render.count(ranges.count - 8)) more" : ""
            if !ranges.isEmpty { table.add("stored ranges", ranges.prefix(8).joined(separator: ", ") + left) }
        }
        if !response.groups.isEmpty { table.add("groups", response.groups.joined(separator: ", ")) }
    }
}
