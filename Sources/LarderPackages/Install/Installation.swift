import HTTPCaching
import Larder
import LarderHTTP

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The data needed to finish or undo an installation after its process was killed: the body of its row.
struct Installation: Codable {
    let id: String
    let name: String
    let mode: DisplacementMode
    /// The installation that it replaces.
    let previousID: String?
    /// Whether the tag of the members was pinned before.
    let wasPinned: Bool

    var row: Key { PackageKeys.row(id) }
    var tag: String { PackageKeys.tag(name) }
    var leader: Key { PackageKeys.leader(name) }

    /// The metadata of a member after the installation.
    func settled(_ inner: [UInt8]) -> [UInt8] {
        mode == .whole ? StoredMember(.added, row: leader, inner: inner).encoded : inner
    }

    /// Options of what belongs to the installation itself.
    static func ownOptions(_ metadata: [UInt8] = []) -> PutOptions {
        PutOptions(lifetime: .never, tags: [PackageKeys.ownTag], metadata: metadata).withReservedNames
    }
}

extension Installation {
    static func encode(_ value: some Encodable) throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return [UInt8](try encoder.encode(value))
    }

    static func decode<T: Decodable>(_ type: T.Type, _ entry: Entry?) throws -> T? {
        guard let bytes = try entry?.body.bytes() else { return nil }
        return try? JSONDecoder().decode(type, from: Data(bytes))
    }
}

/// Writes many operations that make entries smaller, some hundred in a commit: they need no room.
struct BatchedWrites {
    private let store: Store
    private let limit: Int
    private var batch = Self.empty

    init(_ store: Store) throws {
        self.store = store
        limit = try store.housekeepingLimit()
    }

    private static var empty: WriteBatch {
        var batch = WriteBatch()
        batch.isHousekeeping = true
        return batch
    }

    /// Adds operations that have to be in one commit.
    mutating func add(_ operations: (inout WriteBatch) -> Void) throws {
        operations(&batch)
        if batch.count >= limit { try flush() }
    }

    mutating func flush() throws {
        if batch.isEmpty { return }
        try store.write(batch).throwIfFailed()
        batch = Self.empty
    }
}

/// Ends installations: those that are committed, and those that a killed process has left.
struct Settling {
    let store: Store

    /// Gives the members of a committed installation their permanent form, and removes the responses that they
    /// replaced. Can be repeated at any point.
    func finish(_ installation: Installation) throws {
        try settleMembers(installation)
        if installation.mode == .members {
            // Also where the tag is not pinned any more: a kill may have cut the unpinning of its entries off.
            if installation.wasPinned { try store.unpin(reservedTag: installation.tag) }
        } else if try !store.pinnedTags().contains(installation.tag) {
            try store.pin(reservedTag: installation.tag)
        }
        if installation.mode != .whole {
            try store.remove(installation.leader)
            try store.remove(Store.remains(of: installation.tag))
        }
        if let old = installation.previousID, old != installation.id { try removeFiles(of: old) }
        try store.remove(installation.row)
    }

    /// Undoes an installation that was not committed: everything is as before.
    func undo(_ installation: Installation) throws {
        var writes = try BatchedWrites(store)
        try store.forEach(.tag(installation.tag)) { entry in
            guard let member = StoredMember(entry.metadata), member.row == installation.row else { return }
            try writes.add { batch in
                switch member.role {
                case .added: batch.remove(entry)
                case .replaced, .leaving: batch.update(entry, Self.restoring(entry, member, installation.tag))
                }
            }
        }
        try writes.flush()
        // Also where the tag is not pinned: a kill may have cut the pinning of its entries off.
        if !installation.wasPinned, installation.mode != .members { try store.unpin(reservedTag: installation.tag) }
        try leadRemains(installation)
        try removeFiles(of: installation.id)
        try store.remove(installation.row)
    }

    /// Displaces the rest of a package that was displaced as a whole.
    private func leadRemains(_ installation: Installation) throws {
        guard try PackageRecords(store).package(installation.name)?.state == .displaced else { return }
        try store.put(
            [], for: Store.remains(of: installation.tag),
            PutOptions(lifetime: .never, tags: [Store.leaderTag(of: installation.tag)]).withReservedNames)
    }

    private static func restoring(_ entry: Attributes, _ member: StoredMember, _ tag: String) -> EntryChange {
        EntryChange(
            metadata: member.inner, tags: member.hasBorrowedTag ? entry.tags.filter { $0 != tag } : nil
        ).withReservedNames
    }

    /// The list of members and the user data of an installation.
    func removeFiles(of id: String) throws {
        try store.remove(PackageKeys.list(id))
        let data = Selection.prefix(PackageKeys.dataPrefix(id))
        if try store.hasCommitted(data) { try store.remove(data) }
    }

    // MARK: Members

    private func settleMembers(_ installation: Installation) throws {
        var writes = try BatchedWrites(store)
        var shadows: [(shadow: Attributes, key: Key)] = []
        try store.forEach(.tag(installation.tag)) { entry in
            if let key = StoredMember.key(besideWhich: entry.key) {
                // Of this installation, or of one before that was not settled.
                shadows.append((entry, key))
                if shadows.count == 64 {
                    try settle(shadows, installation, &writes)
                    shadows = []
                }
                return
            }
            guard let member = StoredMember(entry.metadata), member.row == installation.row else { return }
            switch member.role {
            case .added:
                try writes.add {
                    $0.update(entry, EntryChange(metadata: installation.settled(member.inner)).withReservedNames)
                }
            case .leaving: try writes.add { $0.remove(entry) }
            // Its shadow is settled with it. One that has lost it keeps what it has.
            case .replaced: break
            }
        }
        try settle(shadows, installation, &writes)
        try writes.flush()
        try restoreOrphans(installation)
    }

    /// Puts members in the places of what they replace.
    private func settle(
        _ shadows: [(shadow: Attributes, key: Key)], _ installation: Installation, _ writes: inout BatchedWrites
    ) throws {
        if shadows.isEmpty { return }
        let present = try store.get(shadows.map(\.key), includingExpired: true)
        for (place, entry) in zip(shadows, present) {
            let inner = StoredMember.unwrapped(place.shadow.metadata)
            let options = PutOptions(
                lifetime: .never, tags: [installation.tag], metadata: installation.settled(inner)
            ).withReservedNames
            try writes.add { batch in
                if let entry {
                    // Anything else came over the network since, and is newer.
                    if let member = StoredMember(entry.metadata), member.row == installation.row {
                        batch.put(contentOf: place.shadow.digest, replacing: entry, options)
                    }
                } else {
                    batch.put(contentOf: place.shadow.digest, for: place.key, options, unlessPresent: true)
                }
                batch.remove(place.shadow.key)
            }
        }
    }

    /// The response that a member should have replaced is gone: its old form is better than none.
    private func restoreOrphans(_ installation: Installation) throws {
        var writes = try BatchedWrites(store)
        try store.forEach(.tag(installation.tag)) { entry in
            guard let member = StoredMember(entry.metadata), member.row == installation.row, member.role == .replaced
            else { return }
            try writes.add { $0.update(entry, Self.restoring(entry, member, installation.tag)) }
        }
        try writes.flush()
    }
}
