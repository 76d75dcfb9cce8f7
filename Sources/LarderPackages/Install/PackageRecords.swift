import HTTPCaching
import Larder
import LarderHTTP

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The records of installed packages: the table that readers look members up by.
struct PackageRecords {
    let store: Store

    init(_ store: Store) { self.store = store }

    private var key: Key { PackageKeys.table(store.applicationVersion) }

    /// Options of a record.
    static let options = PutOptions(lifetime: .never, tags: [PackageKeys.recordTag]).withReservedNames
        .withSharedBody

    /// Options of the entry that the pin of a package lasts as long as.
    static func ownerOptions(_ mode: DisplacementMode) -> PutOptions {
        mode == .whole ? PutOptions(lifetime: .never).withReservedNames : options
    }

    /// The package of a name; nil if there is none.
    func package(_ name: String) throws -> InstalledPackage? { try all().first { $0.name == name } }

    /// All, by name.
    func all() throws -> [InstalledPackage] {
        try PackageTable(in: store).rows.compactMap { row in
            guard var package = try? JSONDecoder().decode(InstalledPackage.self, from: Data(row.record)) else {
                return nil
            }
            if package.state == .installed, package.mode == .whole,
                try store.attributes(of: PackageKeys.owner(package.id)) == nil
            {
                package.state = .displaced
            }
            return package
        }
    }

    /// Puts a package in the place of the one of its name.
    func write(_ package: InstalledPackage) throws {
        try replace(all().filter { $0.name != package.name } + [package])
        try store.flush()
    }

    func replace(_ packages: [InstalledPackage], isRepair: Bool = false) throws {
        var batch = WriteBatch()
        try put(packages, isRepair: isRepair, &batch)
        try store.write(batch).throwIfFailed()
    }

    /// False if a part of the table cannot be read: what is in there must not be taken for nothing.
    func areReadable() throws -> Bool {
        let table = try PackageTable(in: store)
        return try !table.isDamaged && all().count == table.rows.count
    }

    /// Adds a new table to a batch.
    /// - Throws: `corruption` if what cannot be read of the one that is there would be lost.
    func put(_ packages: [InstalledPackage], isRepair: Bool = false, _ batch: inout WriteBatch) throws {
        guard try isRepair || areReadable() else {
            throw LarderError(
                .corruption,
                "the table of packages is damaged, or was written by a later version: 'cachectl verify' names the damage"
            )
        }
        if packages.isEmpty { return batch.remove(key) }
        let table = PackageTable(rows: try packages.sorted { $0.name < $1.name }.map(row))
        batch.put(table.encoded, for: key, Self.options)
    }

    private func row(_ package: InstalledPackage) throws -> PackageTable.Row {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return PackageTable.Row(
            generation: package.id, isWhole: package.mode == .whole, isLast: package.conflicts == .keepExisting,
            supersedes: package.supersedes.map { Instant(milliseconds: $0) }, origins: package.origins,
            record: [UInt8](try encoder.encode(package)))
    }
}
