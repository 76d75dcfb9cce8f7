import HTTPCaching
import HTTPTypes
import Larder

/// The way in which the primary cache key is made from a request: requests with the same key count as asking for the
/// same thing.
///
/// The default is RFC 9111's: the target URI. Everything else trades safety for hits, or the other way round: a key
/// that leaves out a part that the origin uses serves one answer for another.
public struct KeyPolicy: Sendable {
    /// Leaves out the whole query. Default: false.
    public var ignoresQuery = false
    /// Leaves out the query parameters with these names (exact, as sent, before `=`).
    public var ignoredParameters: Set<String> = []
    /// Hosts that are treated as others: `["www.example.org": "example.org"]`; in lower case, with the port if it is
    /// not the default one.
    public var hostAliases: [String: String] = [:]
    /// Adds the method, so that POST and the safe methods other than GET and HEAD (OPTIONS, PROPFIND, REPORT, SEARCH)
    /// can be answered from the cache. Such a POST invalidates nothing. Other methods keep their meaning: they change
    /// the resource, are never answered from the cache, and invalidate. Default: false.
    public var addsMethod = false
    /// Adds the SHA-256 of the request's content. Default: false.
    ///
    /// Content that arrives as a stream is not known when the key is made: such a request is passed on, and its
    /// response is not stored. The same holds for a request that has content while neither this nor ``custom`` makes it
    /// part of the key.
    public var addsBodyDigest = false
    /// Adds the values of these request fields.
    public var addedFields: [HTTPField.Name] = []
    /// Adds a text of the application, such as its version. Default: nil.
    public var addedText: String?
    /// Adds the result of this function for a request; runs last. Default: nil.
    public var custom: (@Sendable (HTTPRequest) throws -> String)?

    /// The target URI alone.
    public init() {}

    /// Whether the key is made of more than the URI, so that one URI has several keys.
    var hasAdditions: Bool {
        addsMethod || addsBodyDigest || !addedFields.isEmpty || addedText != nil || custom != nil
    }

    /// Whether the rules' own key is all there is.
    var isDefault: Bool { !hasAdditions && !ignoresQuery && ignoredParameters.isEmpty && hostAliases.isEmpty }

    /// The URI with what is ignored left out.
    func uri(_ key: CacheKey) -> String {
        if isDefault { return key.description }
        var origin = key.origin
        if let scheme = origin.firstRange(of: "://"), let alias = hostAliases[String(origin[scheme.upperBound...])] {
            origin = origin[..<scheme.upperBound] + alias
        }
        var target = key.target
        if let mark = target.firstIndex(of: "?"), ignoresQuery || !ignoredParameters.isEmpty {
            let kept =
                ignoresQuery
                ? []
                : target[target.index(after: mark)...].split(separator: "&", omittingEmptySubsequences: false).filter {
                    !ignoredParameters.contains(String($0.prefix { $0 != "=" }))
                }
            target = target[..<mark] + (kept.isEmpty ? "" : "?" + kept.joined(separator: "&"))
        }
        return (key.method.map { $0 + " " } ?? "") + origin + target
    }

    /// The methods whose requests get a key, and are answered, like GET.
    private static let ownKeyMethods: Set<String> = ["GET", "POST", "OPTIONS", "PROPFIND", "REPORT", "SEARCH"]

    /// Whether a request of a method is as good as a GET under its own key.
    func givesOwnKey(to method: HTTPRequest.Method) -> Bool {
        addsMethod && Self.ownKeyMethods.contains(method.rawValue)
    }

    /// What is added to the URI; empty for nothing. Each part is preceded by its length, so that two different requests
    /// never give the same text. Nil if two different requests would have the same key: nothing may be stored or
    /// answered under it.
    func additions(_ request: HTTPRequest, hasContent: Bool, body: [UInt8]?) throws -> String? {
        guard hasAdditions else { return "" }
        if hasContent, addsBodyDigest ? body == nil : givesOwnKey(to: request.method) && custom == nil { return nil }
        var text = ""
        func add(_ name: String, _ value: String) { text += " \(name)=\(value.utf8.count):\(value)" }
        if givesOwnKey(to: request.method), request.method != .get { add("method", request.method.rawValue) }
        if addsBodyDigest { add("body", Digest.of(body ?? []).description) }
        for name in addedFields {
            let values = request.headerFields[values: name]
            // Whatever is secret in them stays out of the store.
            add(
                name.canonicalName,
                values.isEmpty ? "-" : Digest.of(Array(values.joined(separator: "\n").utf8)).description)
        }
        if let addedText { add("text", addedText) }
        if let custom { add("custom", try custom(request)) }
        return text
    }
}
