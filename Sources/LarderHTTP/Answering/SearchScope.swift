import HTTPCaching

/// A path whose responses may answer several queries (`No-Vary-Search`), and the query that is asked for.
///
/// A response with such a field is stored under the path, the field's variation and the part of the query that counts.
/// The list of variations that the path has is stored under ``listKey``.
struct SearchScope: Sendable {
    /// Scheme, host and path.
    let path: String
    /// The part after `?`; nil without one.
    let query: String?
    /// Of ``listKey``, when it was asked for: see ``Generations``.
    var generation: UInt32 = 0

    /// - Parameter uri: the target URI, as it is in a key.
    init(uri: String) {
        let mark = uri.utf8.firstIndex(of: UInt8(ascii: "?"))
        path = String(uri[..<(mark ?? uri.endIndex)])
        query = mark.map { String(uri[uri.utf8.index(after: $0)...]) }
    }

    /// The key of the list of variations. No URI has a space.
    var listKey: String { path + " search" }

    /// What the keys of all responses of the path begin with.
    var prefix: String { path + " search=" }

    /// What all keys of a variation begin with.
    func prefix(_ variation: URLVariation) -> String { "\(prefix)\(variation.text) " }

    /// The primary key under a variation.
    func primary(_ variation: URLVariation) -> String { prefix(variation) + variation.canonical(query) }
}
