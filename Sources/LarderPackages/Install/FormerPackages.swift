import Larder
import LarderHTTP

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Packages as they were stored before they had generations: members under their URLs, with a tag of the package. The
/// first process that changes packages takes them over. Until then members are responses like any other, but for those
/// of packages that are displaced as a whole, which are not found.
struct FormerPackages {
    private let store: Store
    /// Called with the steps, for tests.
    private let reach: (String) -> Void

    private static let recordPrefix = "larder:package "
    private static let rowPrefix = "larder:install "
    private static let prefixes = [recordPrefix, rowPrefix, "larder:package-", "larder:displaced "]

    init(_ store: Store, reach: @escaping (String) -> Void = { _ in }) {
        self.store = store
        self.reach = reach
    }

    /// True if there are any. Some lookups if there are none.
    func arePresent() throws -> Bool {
        try Self.prefixes.contains { try store.hasCommitted(.prefix(Key($0))) && !ownKeys($0).isEmpty }
    }

    /// True for a member of an installation that was cut off, under a key beside that of its URL.
    static func isUnfinished(_ entry: Attributes) -> Bool { FormerMember.key(besideWhich: entry.key) != nil }

    /// Takes all over. Can be repeated at any point.
    func takeOver() throws {
        if try !arePresent() { return }
        for key in try ownKeys(Self.recordPrefix) {
            let name = String(key.text.dropFirst(Self.recordPrefix.count))
            try takeOver(name, decode(InstalledPackage.self, key))
        }
        // Of packages that were never committed.
        struct Row: Decodable {
            let name: String
        }
        for key in try ownKeys(Self.rowPrefix) {
            if let row = try decode(Row.self, key) { try takeOver(row.name, nil) }
        }
        for prefix in Self.prefixes { try store.remove(.keys(Set(ownKeys(prefix)))) }
    }

    /// Keys with a prefix, without those of other application versions, whose processes take theirs over.
    private func ownKeys(_ prefix: String) throws -> [Key] {
        var keys: [Key] = []
        try store.forEach(.prefix(Key(prefix))) { entry in
            if entry.version == store.applicationVersion { keys.append(entry.key) }
        }
        return keys
    }

    private func decode<T: Decodable>(_ type: T.Type, _ key: Key) throws -> T? {
        guard let bytes = try store.peek(key)?.body.bytes() else { return nil }
        return try? JSONDecoder().decode(type, from: Data(bytes))
    }

    private func takeOver(_ name: String, _ former: InstalledPackage?) throws {
        let tag = "larder:package " + name
        if let former, try PackageRecords(store).package(name) == nil {
            let leader = try store.peek(Key("larder:package-state " + name))
            let isDisplaced = former.mode == .whole && !FormerMember.isInstalled(leader)
            try copy(former, tag, isDisplaced: isDisplaced)
        } else {
            try sort(tag) { _, _, _, _ in }
        }
        try store.remove(.tag(tag))
        reach("former.removed")
        if try store.pinnedTags().contains(tag) { try store.unpin(reservedTag: tag) }
    }

    /// Puts members, list and user data under keys of a generation, which a commit makes the package's.
    private func copy(_ package: InstalledPackage, _ tag: String, isDisplaced: Bool) throws {
        let id = package.id
        let records = PackageRecords(store)
        if try !store.pinnedTags().contains(PackageKeys.recordTag) { try store.pin(reservedTag: PackageKeys.recordTag) }
        try store.put([], for: PackageKeys.row(id), PackageRecords.options)
        let lease = try store.lease(reservedTag: PackageKeys.tag(id), for: .seconds(3_600))
        defer { lease.release() }
        if package.mode != .members { try store.pin(reservedTag: PackageKeys.tag(id), while: PackageKeys.owner(id)) }
        try sort(tag) { url, digest, record, batch in
            batch.put(
                contentOf: digest, for: PackageKeys.member(id, url),
                PutOptions(lifetime: .never, tags: [PackageKeys.tag(id)], metadata: record).withReservedNames
                    .withSharedBody)
        }
        let dataPrefix = Key("larder:package-data \(id) ")
        var files = try store.keys(.prefix(dataPrefix)).map {
            ($0, PackageKeys.data(id, String(decoding: $0.bytes[dataPrefix.bytes.count...], as: UTF8.self)))
        }
        files.append((Key("larder:package-list " + id), PackageKeys.list(id)))
        var batch = WriteBatch()
        for (old, new) in files {
            if let entry = try store.peek(old) { batch.put(contentOf: entry.digest, for: new, PackageRecords.options) }
        }
        try store.write(batch, durability: .durable).throwIfFailed()
        reach("former.copied")
        var commit = WriteBatch()
        try records.put(records.all() + [package], &commit)
        if package.mode != .members, !isDisplaced {
            commit.put([], for: PackageKeys.owner(id), PackageRecords.ownerOptions(package.mode))
        }
        try store.write(commit, durability: .durable).throwIfFailed()
        reach("former.committed")
    }

    /// Runs `take` on each member, and gives responses that an installation was about to replace their form again.
    private func sort(
        _ tag: String, _ take: (_ url: Key, _ digest: Digest, _ record: [UInt8], inout WriteBatch) -> Void
    ) throws {
        var batch = WriteBatch()
        try store.forEach(.tag(tag)) { entry in
            switch try state(entry) {
            case .member(let record):
                take(FormerMember.key(besideWhich: entry.key) ?? entry.key, entry.digest, record, &batch)
            case .restored(let record):
                let tags = entry.tags.filter { $0 != tag }
                batch.update(entry, EntryChange(metadata: record, tags: tags).withReservedNames)
            case .gone: return
            }
            if batch.count < 256 { return }
            try store.write(batch).throwIfFailed()
            batch = WriteBatch()
        }
        if !batch.isEmpty { try store.write(batch).throwIfFailed() }
    }

    private enum State {
        case member([UInt8])
        /// Not of the package: its installation was not committed.
        case restored([UInt8])
        case gone
    }

    private func state(_ entry: Attributes) throws -> State {
        var metadata = entry.metadata
        var isBorrowed = false
        while let member = FormerMember(metadata) {
            let isInstalled = FormerMember.isInstalled(try store.peek(member.row))
            if isInstalled != (member.role == .added) { return .gone }
            isBorrowed = isBorrowed || member.hasBorrowedTag
            metadata = member.inner
        }
        return isBorrowed ? .restored(metadata) : .member(metadata)
    }
}

/// Metadata of an entry that counted by a row: a byte of kind, 5, one of version, 1, one of role, one of flags, the
/// length of the row's key as u16 with the least significant byte first, that key, and the entry's other metadata.
private struct FormerMember {
    enum Role: UInt8 {
        case added = 0
        case replaced = 1
        case leaving = 2
    }

    let role: Role
    /// True if the entry has the tag of the package only during the installation.
    let hasBorrowedTag: Bool
    let row: Key
    let inner: [UInt8]

    init?(_ bytes: [UInt8]) {
        guard bytes.count >= 6, bytes[0] == 5, bytes[1] == 1, let role = Role(rawValue: bytes[2]) else { return nil }
        let end = 6 + Int(bytes[4]) + Int(bytes[5]) << 8
        guard end > 6, end <= bytes.count else { return nil }
        self.role = role
        hasBorrowedTag = bytes[3] & 1 != 0
        row = Key(bytes: bytes[6..<end])
        inner = Array(bytes[end...])
    }

    static func isInstalled(_ row: Entry?) -> Bool { row?.metadata == [6, 1, 1] }

    /// The key of the response that a member was about to replace; nil for any other key.
    static func key(besideWhich shadow: Key) -> Key? {
        let mark = Array(" package=".utf8)
        guard let space = shadow.bytes.lastIndex(of: 0x20), shadow.bytes[space...].starts(with: mark) else {
            return nil
        }
        return Key(bytes: shadow.bytes[..<space])
    }
}
