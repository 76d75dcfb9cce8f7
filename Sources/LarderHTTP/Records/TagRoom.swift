import Larder

/// The tags of one entry, of which there may be 64 with 8 KiB.
struct TagRoom {
    private var seen: Set<String> = []
    private var byteCount = 0

    /// Takes a tag in; false if it is there already, or there is no room for it.
    mutating func take(_ tag: String) -> Bool {
        guard seen.count < 64, byteCount + tag.utf8.count + 1 <= 8_192, seen.insert(tag).inserted else { return false }
        byteCount += tag.utf8.count + 1
        return true
    }

    /// The tags of an entry with those of another that is added to it; nil where there is no room for all of them.
    static func union(_ tags: [String], _ more: [String]) -> [String]? {
        let new = Set(more).subtracting(tags)
        if new.isEmpty { return tags }
        var room = TagRoom()
        let all = tags + more.filter { new.contains($0) }.uniqued
        return all.allSatisfy { room.take($0) } ? all : nil
    }
}

extension [String] {
    fileprivate var uniqued: [String] {
        var seen: Set<String> = []
        return filter { seen.insert($0).inserted }
    }
}

extension PutOptions {
    /// With the tags of an entry that is added to, and at least its lifetime: it must not be lost, nor hidden from a
    /// purge, for what is added to it.
    func extending(_ entry: Attributes) -> PutOptions {
        var options = self
        // Where there is no room, what is added is not listed.
        options.tags = TagRoom.union(entry.tags, tags) ?? entry.tags
        if case .until(let end) = lifetime { options.lifetime = entry.expires.map { .until(max(end, $0)) } ?? .never }
        return options
    }
}
