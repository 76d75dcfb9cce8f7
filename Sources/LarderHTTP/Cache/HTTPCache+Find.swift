import HTTPCaching
import HTTPTypes
import Larder

/// Finding what is stored for a request: under its own key, and under those that queries of its path share.
///
/// Nothing when the store cannot be read, for a cache in trouble is a miss.
extension HTTPCache {
    /// The cooperative pool does not wait.
    func find(_ primary: String, _ scope: SearchScope?, for request: HTTPRequest) async -> [Shelf.Found] {
        do {
            var found = try await shelf.find(primary, for: request.headerFields)
            if found.isEmpty, let scope {
                for variation in try await shelf.variations(scope) where found.isEmpty {
                    found = try await shelf.find(scope.primary(variation), for: request.headerFields)
                }
            }
            watch.succeeded(.read)
            return found
        } catch {
            return unreadable(primary, error)
        }
    }

    /// As above, waiting on the calling thread.
    func findWaiting(_ primary: String, _ scope: SearchScope?, for request: HTTPRequest) -> [Shelf.Found] {
        do {
            var found = try shelf.findWaiting(primary, for: request.headerFields)
            if found.isEmpty, let scope {
                for variation in try shelf.variationsWaiting(scope) where found.isEmpty {
                    found = try shelf.findWaiting(scope.primary(variation), for: request.headerFields)
                }
            }
            return found
        } catch {
            return unreadable(primary, error)
        }
    }

    /// As above; nil where it would take waiting.
    func findAtOnce(_ primary: String, _ scope: SearchScope?, for request: HTTPRequest) -> [Shelf.Found]? {
        do {
            guard var found = try shelf.findAtOnce(primary, for: request.headerFields) else { return nil }
            if found.isEmpty, let scope {
                guard let variations = try shelf.variationsAtOnce(scope) else { return nil }
                for variation in variations where found.isEmpty {
                    guard let shared = try shelf.findAtOnce(scope.primary(variation), for: request.headerFields) else {
                        return nil
                    }
                    found = shared
                }
            }
            watch.succeeded(.read)
            return found
        } catch {
            return unreadable(primary, error)
        }
    }

    private func unreadable(_ primary: String, _ error: any Error) -> [Shelf.Found] {
        watch.failed(.read, error, key: primary)
        return []
    }
}
