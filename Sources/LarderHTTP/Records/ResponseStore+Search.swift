import HTTPCaching
import Larder

/// Responses that answer several queries.
extension ResponseStore {
    /// The variations of a path, the latest first.
    func variations(_ scope: SearchScope) async throws -> [URLVariation] {
        try await store.get(Key(scope.listKey), includingExpired: true)
            .flatMap { VariationList($0.metadata)?.variations } ?? []
    }

    /// As above, waiting on the calling thread.
    func variationsWaiting(_ scope: SearchScope) throws -> [URLVariation] {
        try store.get(Key(scope.listKey), includingExpired: true)
            .flatMap { VariationList($0.metadata)?.variations } ?? []
    }

    /// As above, without being an access.
    func peekVariations(_ scope: SearchScope) throws -> [URLVariation] {
        try store.peek(Key(scope.listKey)).flatMap { VariationList($0.metadata)?.variations } ?? []
    }

    /// As above; nil where the store would have to wait for a disk.
    func variationsAtOnce(_ scope: SearchScope) throws -> [URLVariation]? {
        switch try store.lookUp(Key(scope.listKey), includingExpired: true) {
        case .hit(let entry): VariationList(entry.metadata)?.variations ?? []
        case .miss: []
        case .due: nil
        }
    }

    /// Makes a response findable that was just put under a key of `variation`. Returns the variations that the path has
    /// now. May wait.
    func list(_ variation: URLVariation, _ policy: StoredPolicy, in scope: SearchScope) throws -> [URLVariation] {
        let key = Key(scope.listKey)
        return try lock(scope.listKey).locked {
            let old = try store.get(key, includingExpired: true)
            var list = old.flatMap { VariationList($0.metadata) } ?? VariationList()
            let surplus = list.insert(variation)
            var end = lifetime(of: policy)
            if case .until(let moment) = end, let old, VariationList(old.metadata) != nil {
                end = old.attributes.expires.map { .until(max(moment, $0)) } ?? .never
            }
            try store.put([], for: key, PutOptions(lifetime: end, metadata: list.encoded))
            // Not found any more, they must not be found again either: no invalidation reaches them meanwhile.
            for variation in surplus { try store.remove(.prefix(Key(scope.prefix(variation)))) }
            return list.variations
        }
    }

    /// Removes what is stored for queries of a path whose list is gone, before there is one again: no invalidation
    /// reached it meanwhile. What is still arriving stays: its own load hears of invalidations. May wait.
    func forgetUnlisted(_ scope: SearchScope) throws {
        guard try variationsWaiting(scope).isEmpty else { return }
        try store.remove(.prefix(Key(scope.prefix)) && !.incomplete)
    }

    /// Removes everything that may answer the query, under every variation of the path. Returns how many. May wait.
    func removeShared(_ scope: SearchScope) throws -> Int {
        try variationsWaiting(scope).reduce(0) { try $0 + removeAll(scope.primary($1)) }
    }
}
