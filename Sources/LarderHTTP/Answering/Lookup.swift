import HTTPCaching
import HTTPTypes
import Larder

/// Finding what is stored for a request: under its own key, and under those that queries of its path share.
///
/// Own key first, then the variations that are known of the path, then those of its list that are not: a shared
/// response takes two lookups, the first time that a process sees its path three. Nothing when the store cannot be
/// read, for a cache in trouble is a miss.
final class Lookup: Sendable {
    private let responses: ResponseStore
    private let watch: StoreWatch
    private let variations = VariationMemory()

    /// - Parameter watch: told how the store does.
    init(_ responses: ResponseStore, _ watch: StoreWatch) {
        self.responses = responses
        self.watch = watch
    }

    /// Whether the store is.
    var isEncrypted: Bool { responses.store.isEncrypted }

    /// The variations of a path have become these.
    func note(_ listed: [URLVariation], of scope: SearchScope) { variations.note(listed, of: scope) }

    /// The cooperative pool does not wait.
    func find(_ primary: String, _ scope: SearchScope?, for request: HTTPRequest) async -> [ResponseStore.Found] {
        do {
            let own = try await responses.find(primary, for: request.headerFields)
            var found: [ResponseStore.Found] = []
            if let scope, responses.mayBeShared(own) {
                let known = variations.variations(scope)
                for variation in known where found.isEmpty {
                    found = try await responses.find(scope.primary(variation), for: request.headerFields)
                }
                if found.isEmpty {
                    let listed = try await responses.variations(scope)
                    variations.note(listed, of: scope)
                    for variation in listed where found.isEmpty && !known.contains(variation) {
                        found = try await responses.find(scope.primary(variation), for: request.headerFields)
                    }
                }
            }
            watch.succeeded(.read)
            return found.isEmpty ? own : found + own
        } catch {
            return unreadable(primary, error)
        }
    }

    /// As above, waiting on the calling thread.
    func findWaiting(_ primary: String, _ scope: SearchScope?, for request: HTTPRequest) -> [ResponseStore.Found] {
        search(primary, scope) { key in
            try responses.findWaiting(key, for: request.headerFields)
        } list: { scope in
            try responses.variationsWaiting(scope)
        } ?? []
    }

    /// As above, on a thread that may wait, after bytes that `find` leaves encrypted turned out to be damaged: bodies
    /// are decrypted, and damaged ones missed. Responses with bodies in progress, which would have to be read again,
    /// are left out.
    func findDecrypted(
        _ primary: String, _ scope: SearchScope?, for request: HTTPRequest
    ) async -> [ResponseStore.Found] {
        let found = try? await responses.store.performShort { [self] in findWaiting(primary, scope, for: request) }
        return (found ?? []).filter { found in
            !found.parts.contains { if case .inProgress(let body) = $0.bytes { body.isEncrypted } else { false } }
        }
    }

    /// As above; nil where it would take waiting.
    func findAtOnce(_ primary: String, _ scope: SearchScope?, for request: HTTPRequest) -> [ResponseStore.Found]? {
        search(primary, scope) { key in
            try responses.findAtOnce(key, for: request.headerFields)
        } list: { scope in
            try responses.variationsAtOnce(scope)
        }
    }

    /// Whether what is not stored under the URL itself may answer: a response to another query of the path, or a member
    /// of a package. As far as lookups tell that do not wait.
    func mayFindElsewhere(_ scope: SearchScope) -> Bool {
        guard variations.variations(scope).isEmpty, (try? responses.variationsAtOnce(scope))?.isEmpty == true else {
            return true
        }
        switch try? responses.store.peekAtOnce(responses.packages.key) {
        case .miss: return false
        case .hit(let entry): return (try? responses.packages.table(entry))?.rows.isEmpty != true
        case .due, nil: return true
        }
    }

    /// The search by lookups that return nil where they would have to wait.
    private func search(
        _ primary: String, _ scope: SearchScope?, at key: (String) throws -> [ResponseStore.Found]?,
        list: (SearchScope) throws -> [URLVariation]?
    ) -> [ResponseStore.Found]? {
        do {
            guard let own = try key(primary) else { return nil }
            var found: [ResponseStore.Found] = []
            if let scope, responses.mayBeShared(own) {
                let known = variations.variations(scope)
                for variation in known where found.isEmpty {
                    guard let shared = try key(scope.primary(variation)) else { return nil }
                    found = shared
                }
                if found.isEmpty {
                    guard let listed = try list(scope) else { return nil }
                    variations.note(listed, of: scope)
                    for variation in listed where found.isEmpty && !known.contains(variation) {
                        guard let shared = try key(scope.primary(variation)) else { return nil }
                        found = shared
                    }
                }
            }
            watch.succeeded(.read)
            return found.isEmpty ? own : found + own
        } catch {
            return unreadable(primary, error)
        }
    }

    private func unreadable(_ primary: String, _ error: any Error) -> [ResponseStore.Found] {
        watch.failed(.read, error, key: primary)
        return []
    }
}
