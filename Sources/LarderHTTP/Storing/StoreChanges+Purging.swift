import HTTPCaching
import HTTPTypes
import Larder

/// Removing responses by hand. Returns how many entries, each time; errors of the store.
extension StoreChanges {
    /// Everything stored for the target of a request: all methods and variants.
    func purge(_ request: HTTPRequest) throws -> Int {
        guard let (primaries, scope) = targets(of: request) else { return 0 }
        var count = 0
        for primary in primaries {
            generations.advance(primary, scope)
            count += try responses.removeAll(primary)
            count += try store.remove(Self.withAdditions(primary))
        }
        if let scope { count += try responses.removeShared(scope) }
        return count
    }

    /// From its return on no purge misses what is being stored: what was asked for before is stored, or will not be.
    /// - Parameter request: nil for all responses.
    func prepareToPurge(_ request: HTTPRequest?) async {
        guard let request else {
            generations.advanceAll()
            return await generations.commitsEnd()
        }
        guard let (primaries, scope) = targets(of: request) else { return }
        for primary in primaries { generations.advance(primary, scope) }
        await generations.commitsEnd(under: primaries + (scope.map { [$0.listKey] } ?? []))
    }

    /// The primary keys of a request's target, by method, and where responses to other queries lie.
    private func targets(of request: HTTPRequest) -> (primaries: [String], scope: SearchScope?)? {
        let (rules, keyPolicy) = (context.rules, context.configuration.keyPolicy)
        guard let key = rules.cacheKey(for: request) else { return nil }
        let uri = keyPolicy.uri(key)
        let methods = rules.options.extraMethods.sorted()
        return ([uri] + methods.map { "\($0) \(uri)" }, generations.scope(of: key, keyPolicy))
    }

    /// Everything stored for URLs with a prefix.
    func purge(prefix: String) throws -> Int {
        generations.advanceAll()
        let start = normalized(prefix, endsHost: true)
        var count = 0
        for method in [""] + context.rules.options.extraMethods.sorted().map({ $0 + " " }) {
            count += try store.remove(.prefix(Key(method + start)))
        }
        for package in try PackageTable(in: store).rows {
            count += try store.remove(.prefix(PackageKeys.member(package.generation, start)))
        }
        // What several queries share stands under the path: where a query is named, all of it goes.
        if start.contains("?") {
            count += try store.remove(.prefix(Key(SearchScope(uri: start).path + " search=")))
        }
        return count
    }

    /// Everything that belongs to a cache group of an origin (RFC 9875).
    func purge(group: String, origin: String) throws -> Int {
        generations.advanceAll()
        return try store.remove(.tag(ResponseTags.tag(group: group, origin: normalized(origin))))
    }

    /// Everything stored under a tag.
    func purge(tag: String) throws -> Int {
        generations.advanceAll()
        return try store.remove(.tag(ResponseTags.held(tag)))
    }

    /// Every selected response, with its parts, and with the list of its variants if it was the last of them.
    func purge(_ selection: Selection, _ progress: (PurgeProgress) throws -> Void) throws -> Int {
        generations.advanceAll()
        var state = PurgeProgress(examined: 0, removed: 0)
        var keys: Set<Key> = []
        var remains = ResponseRemains()
        func remove() throws {
            // What was given other properties meanwhile stays.
            if !keys.isEmpty { state.removed += try store.remove(Selection.keys(keys) && selection) }
            keys.removeAll(keepingCapacity: true)
            try progress(state)
        }
        try store.forEach(selection) { entry in
            state.examined += 1
            if remains.note(entry) { keys.insert(entry.key) }
            if keys.count == 1_000 || state.examined % 10_000 == 0 { try remove() }
        }
        try remove()
        try remains.remove(from: store)
        return state.removed
    }

    /// A URL, or the beginning of one, with scheme and host as keys have them.
    private func normalized(_ prefix: String, endsHost: Bool = false) -> String {
        guard let colon = prefix.firstRange(of: "://") else { return prefix }
        let rest = prefix[colon.upperBound...]
        let end = rest.firstIndex { $0 == "/" || $0 == "?" } ?? rest.endIndex
        let request = HTTPRequest(
            method: .get, scheme: String(prefix[..<colon.lowerBound]), authority: String(rest[..<end]), path: "/")
        let target = end == rest.endIndex && endsHost ? "/" : rest[end...]
        return context.rules.cacheKey(for: request).map { $0.origin + target } ?? prefix
    }
}
