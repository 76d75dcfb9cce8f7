import HTTPCaching
import Locks

/// The variations of paths that were seen lately, so that a lookup need not read the list first.
///
/// What it says is a place to look, no more: a response is there, or it is not.
final class VariationMemory: Sendable {
    private static let limit = 4_096
    private let paths = Mutex<[String: [URLVariation]]>([:])

    /// Those of a path; none where nothing is known.
    func variations(_ scope: SearchScope) -> [URLVariation] { paths.withLock { $0[scope.path] ?? [] } }

    func note(_ variations: [URLVariation], of scope: SearchScope) {
        paths.withLock { paths in
            if variations.isEmpty {
                paths[scope.path] = nil
                return
            }
            if paths.count >= Self.limit, paths[scope.path] == nil { paths.removeAll(keepingCapacity: true) }
            paths[scope.path] = variations
        }
    }
}
