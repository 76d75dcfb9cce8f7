import HTTPTypes

/// The cache directives of a request (RFC 9111 section 5.2.1, RFC 5861 section 4). They are advisory.
public struct RequestDirectives: Sendable, Hashable {
    /// `max-age` in seconds (5.2.1.1). An invalid value counts as 0.
    public var maxAge: Int64?
    /// `max-stale` in seconds (5.2.1.2); without an argument the greatest value. An invalid value counts as absent.
    public var maxStale: Int64?
    /// `min-fresh` in seconds (5.2.1.3). An invalid value counts as the greatest.
    public var minFresh: Int64?
    /// `stale-if-error` in seconds (RFC 5861 section 4).
    public var staleIfError: Int64?
    /// `no-cache` (5.2.1.4).
    public var noCache = false
    /// `no-store` (5.2.1.5).
    public var noStore = false
    /// `no-transform` (5.2.1.6).
    public var noTransform = false
    /// `only-if-cached` (5.2.1.7).
    public var onlyIfCached = false

    /// No directives.
    public init() {}

    /// Parses the combined lines of `Cache-Control`. Never fails.
    ///
    /// - Parameter bytes: the values of all lines, joined by commas. Parts that cannot be parsed are ignored.
    public init(_ bytes: [UInt8]) {
        for directive in DirectiveList.parse(bytes) {
            var seconds: Int64?
            if case .value(let argument) = directive.argument { seconds = DeltaSeconds.parse(argument) }
            switch String(decoding: directive.name, as: UTF8.self) {
            case "max-age": maxAge = maxAge ?? seconds ?? 0
            case "max-stale": maxStale = maxStale ?? (directive.argument == .none ? DeltaSeconds.maximum : seconds)
            case "min-fresh": minFresh = minFresh ?? seconds ?? DeltaSeconds.maximum
            case "stale-if-error": staleIfError = staleIfError ?? seconds
            case "no-cache": noCache = true
            case "no-store": noStore = true
            case "no-transform": noTransform = true
            case "only-if-cached": onlyIfCached = true
            default: break
            }
        }
    }
}
