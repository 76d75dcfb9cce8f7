import Larder

/// Remains of responses that are being removed one by one: their parts, and lists of variants whose responses are all
/// removed.
package struct ResponseRemains {
    private var lists: Set<Key> = []
    private var wholes: [Key] = []
    private var searches: Set<String> = []

    /// Makes an empty set.
    package init() {}

    /// Records an entry that is about to be removed.
    /// - Returns: false if it is not a response.
    @discardableResult
    package mutating func note(_ entry: Attributes) -> Bool {
        guard let response = ResponseSummary(entry) else { return false }
        if response.primaryKey != entry.key { lists.insert(response.primaryKey) }
        if let mark = entry.key.text.firstRange(of: " search=") {
            searches.insert(String(entry.key.text[..<mark.lowerBound]))
        }
        if !response.isComplete || response.storedBytes != entry.length.bytes { wholes.append(entry.key) }
        return true
    }

    /// Removes the remains that belong to no response. May wait.
    package func remove(from store: Store) throws {
        for key in wholes where try store.attributes(of: key) == nil {
            try store.remove(.prefix(StoredKeys.partPrefix(of: key)))
        }
        for key in lists {
            guard let entry = try store.attributes(of: key), let list = VariantList(entry),
                try list.keys.allSatisfy({ try store.attributes(of: $0) == nil })
            else { continue }
            try store.remove(key)
        }
        for path in searches where try store.keys(.prefix(Key(path + " search="))).isEmpty {
            try store.remove(Key(SearchScope(uri: path).listKey))
        }
    }
}
