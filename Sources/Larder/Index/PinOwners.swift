import LMDB

/// Pins that last as long as an entry, the *owner* of the pin.
///
/// Once the owner is gone, by whatever hand, the pin is *released*: displacement takes the entries with its tag before
/// all others, in as many transactions as it takes, and then unpins the tag. Nothing else looks at owners. In
/// `pinnedTags` the row of such a pin stands beside that of the tag.
struct PinOwners {
    struct Pin {
        let tag: String
        /// The index key of the owner.
        let owner: [UInt8]
        /// Displacement has passed by the rows up to here: their entries are leased, or pinned otherwise.
        var position: [UInt8]
    }

    private(set) var pins: [Pin] = []
    /// Positions of those that are released.
    var released: [Int] = []

    init(_ index: Index, _ transaction: ReadTransaction) throws {
        guard try transaction.statistics(index.pinnedTags).entries > 0 else { return }
        try transaction.withCursor(index.pinnedTags) { cursor in
            var pair = try cursor.first()
            // First of all, where rows are in the order of their keys.
            while let (row, owner) = pair {
                guard row.first == 0 else {
                    if index.isOrdered { break }
                    pair = try cursor.next()
                    continue
                }
                let tag = String(decoding: row.dropFirst(), as: UTF8.self)
                pins.append(Pin(tag: tag, owner: Array(owner), position: Index.tagPrefix(tag)))
                pair = try cursor.next()
            }
        }
        for position in pins.indices where try index.entry(pins[position].owner, transaction) == nil {
            released.append(position)
        }
    }

    /// Displacement took the entry under a key.
    mutating func noteRemoval(of key: [UInt8]) {
        for position in pins.indices where pins[position].owner == key && !released.contains(position) {
            released.append(position)
        }
    }

    /// True for the key of an owner.
    func owns(_ key: [UInt8]) -> Bool { pins.contains { $0.owner == key } }

    /// True if the pin of a tag is released.
    func isReleased(_ tag: String) -> Bool { released.contains { pins[$0].tag == tag } }

    mutating func pass(_ row: [UInt8], of position: Int) { pins[position].position = row }

    /// The row that names the owner of a tag's pin. No tag has a NUL.
    static func row(_ tag: String) -> [UInt8] { [0] + Array(tag.utf8) }
}

extension Mutation {
    /// Removes an entry whose pin is released; nil if there is none.
    func removeReleased() throws -> Victim? {
        var pins = try pinOwners ?? PinOwners(index, reading)
        defer { pinOwners = pins }
        while let position = pins.released.first {
            if let key = try firstReleased(position, &pins) {
                return try remove(key).map { Victim(key: key, record: $0, reason: .leastRecentlyUsed) }
            }
            pins.released.removeFirst()
        }
        return nil
    }

    /// The first entry that only this pin has kept. A pin whose tag no entry has any more ends, but for one whose tag
    /// is leased: entries and owner are still to come.
    private func firstReleased(_ position: Int, _ pins: inout PinOwners) throws -> [UInt8]? {
        let pin = pins.pins[position]
        let prefix = Index.tagPrefix(pin.tag)
        var isUsed = pin.position != prefix
        let found = try reading.withCursor(index.tags) { cursor -> [UInt8]? in
            var pair = try cursor.seek(pin.position)
            while let (row, value) = pair, row.hasPrefix(prefix) {
                isUsed = true
                let key = Array(value)
                pins.pass(Array(row), of: position)
                if let record = try record(key), try !isKept(record, beside: pins), try !isLeased(key: key, record) {
                    return key
                }
                pair = try cursor.next()
            }
            return nil
        }
        if try found == nil && !isUsed && !isLeased(tag: pin.tag) {
            for row in [Array(pin.tag.utf8), PinOwners.row(pin.tag)] { try transaction.delete(index.pinnedTags, row) }
            noteChange(trees: 2)
        }
        return found
    }

    private func isLeased(tag: String) throws -> Bool {
        try index.isLeased([], [tag], digest: { nil }, version: 0, at: now, reading)
    }

    private func isKept(_ record: EntryRecord, beside pins: PinOwners) throws -> Bool {
        try record.isPinned
            || record.tags.contains {
                try !pins.isReleased($0) && reading.get(index.pinnedTags, Array($0.utf8)) != nil
            }
    }
}

extension Index {
    /// True if displacement may take something that a released pin has kept.
    func hasReleased(_ owners: PinOwners, at now: Timestamp, _ transaction: ReadTransaction) throws -> Bool {
        try owners.released.contains { position in
            let prefix = Self.tagPrefix(owners.pins[position].tag)
            return try transaction.withCursor(tags) { cursor in
                guard let (row, value) = try cursor.seek(prefix), row.hasPrefix(prefix) else { return false }
                let key = Array(value)
                guard let record = try entry(key, transaction) else { return false }
                return try !isLeased(
                    record.wholeKey(key), record.tags,
                    digest: { try head(of: record, transaction).flatMap { $0.isComplete ? $0.digest : nil } },
                    version: record.version, at: now, transaction)
            }
        }
    }
}
