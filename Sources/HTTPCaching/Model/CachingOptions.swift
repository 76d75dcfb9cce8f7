import HTTPTypes

/// The choices that the specifications leave to a cache.
///
/// Every default is conforming. Options that affect storing (`mode`, `targetedFields`, the heuristic ones, `trustsAge`)
/// are part of ``fingerprint``, which a ``StoredPolicy`` remembers: a policy made under other options must be made
/// again from the stored fields.
public struct CachingOptions: Sendable, Hashable {
    /// The treatment of a response that sets a cookie (RFC 9111 section 7.3).
    public enum SetCookiePolicy: UInt8, Sendable, Hashable {
        /// `Set-Cookie` does not affect storing, as in RFC 9111.
        case ignore = 0
        /// A shared cache needs explicit freshness of more than 0 or `public`, and no `no-cache`, to store such a
        /// response; it is never heuristically fresh. The default.
        case requireExplicitFreshness = 1
        /// A shared cache never stores such a response, and does not use one that it stored under another policy.
        case neverStore = 2
    }

    /// Private or shared. Default: shared.
    public var mode: CacheMode
    /// The name of this cache in `Cache-Status` (RFC 9211 section 2). Default: `larder`.
    public var cacheName: String = "larder"
    /// The target list of RFC 9213 section 2.2: names of targeted fields, most applicable first. Default: none; a
    /// content delivery cache lists `CDN-Cache-Control`.
    public var targetedFields: [HTTPField.Name] = []

    /// The part of the time since `Last-Modified` that counts as heuristic freshness (RFC 9111 section 4.2.2), in
    /// percent, 0...100. Default: 10; 0 turns it off.
    public var heuristicPercent: Int64 = 10
    /// The longest heuristic freshness lifetime, in seconds. Default: one day.
    public var heuristicCeilingSeconds: Int64 = 86_400
    /// Lifetimes for responses that state none, by status code, in seconds: `[404: 10, 301: 3_600]` remembers a missing
    /// resource for ten seconds (negative caching). They count as heuristic freshness, take precedence over the share
    /// of the time since `Last-Modified`, and do not apply to a response with `no-cache`, or with `Set-Cookie` in a
    /// shared cache. Only status codes that ``CacheRules/understands(status:)`` knows. Default: none.
    public var lifetimesByStatus: [Int: Int64] = [:]
    /// Uses `Age` plus the response delay as the initial age, and ignores the apparent age (RFC 9111 section 4.2.3
    /// allows both). Default: false, the more cautious one; true helps if the origin's clock is wrong.
    public var trustsAge = false
    /// How far `now` may be before the time a response was received without making the stored response stale, in
    /// milliseconds. Default: 60,000.
    public var clockSkewToleranceMilliseconds: Int64 = 60_000

    /// Honours the request's cache directives (RFC 9111 section 5.2.1: advisory). Default: true.
    public var honorsRequestDirectives = true
    /// Treats a request's `Pragma: no-cache` without `Cache-Control` as `no-cache`. RFC 9111 section 5.4 deprecates it.
    /// Default: false.
    public var honorsPragma = false
    /// Serves stale responses while the origin cannot be reached (RFC 9111 section 4.2.4), unless a directive prohibits
    /// it. Default: true.
    public var servesStaleWhenDisconnected = true
    /// Treats a 500, 502, 503 or 504 answer as if the server had failed to respond (RFC 9111 section 4.3.3). Default:
    /// true.
    public var takesServerErrorAsDisconnection = true
    /// Serves a stale response in place of every 5xx answer, whether or not it was validated, as if the origin could
    /// not be reached. RFC 9111 section 4.2.4 requires an agreement with the origin for that. Default: false.
    public var servesStaleForServerErrors = false
    /// The longest staleness that may be served only because the cache is disconnected, in seconds. `stale-if-error`
    /// and `max-stale` have their own limits. Default: one day.
    public var disconnectedStaleLimitSeconds: Int64 = 86_400

    /// Fields that an update, such as a 304, does not change in a stored response, in addition to those of RFC 9111
    /// section 3.2. Some origins send another `Content-Encoding` in a 304 than with the content itself. Default: none.
    public var fieldsKeptOnUpdate: Set<HTTPField.Name> = []

    /// The treatment of `Set-Cookie` in a shared cache.
    public var setCookie: SetCookiePolicy = .requireExplicitFreshness
    /// True if this cache can keep and combine parts of a representation (RFC 9111 section 3.3). Default: true; false
    /// stores no 206 and no cut-off response.
    public var storesPartialResponses = true
    /// Asks for the rest of a stored part that is fresh but has no strong validator. The answer cannot be combined (RFC
    /// 9110 section 15.3.7.3), so a 206 costs a second request. Default: true.
    public var completesWithoutValidator = true
    /// The most parts of one `Range` field that are answered; more are answered with the whole representation.
    /// Default: 32.
    public var maximumRanges = 32
    /// Chooses a stored response by its `Content-Language` if the request prefers that language (RFC 9111 section 4.1).
    /// Default: true.
    public var selectsByContentLanguage = true

    /// Safe, cacheable methods understood in addition to GET, HEAD and POST; they have their own keys. The joining
    /// layer has to add to the key anything else that selects the answer.
    public var extraMethods: Set<String> = []
    /// Methods known to be safe in addition to GET, HEAD, OPTIONS, TRACE, PROPFIND, QUERY, REPORT and SEARCH (RFC 9110
    /// section 9.2.1). All others invalidate.
    public var extraSafeMethods: Set<String> = []
    /// Status codes whose caching requirements the caller implements in addition to those listed in
    /// ``CacheRules/understands(status:)``.
    public var extraStatusCodes: Set<Int> = []

    /// Makes options with the defaults for a mode.
    ///
    /// - Parameter mode: shared by many users, or private to one. Default: shared.
    public init(mode: CacheMode = .shared) { self.mode = mode }

    /// The defaults for a private cache, such as an app's.
    public static var privateCache: CachingOptions { CachingOptions(mode: .private) }

    /// The defaults for a shared cache in front of an origin: `CDN-Cache-Control` is on the target list.
    public static var gateway: CachingOptions {
        var options = CachingOptions(mode: .shared)
        options.targetedFields = [.cdnCacheControl]
        return options
    }

    /// A checksum over the options that a ``StoredPolicy`` depends on.
    public var fingerprint: UInt32 {
        var hash: UInt32 = 2_166_136_261
        func mix(_ byte: UInt8) { hash = (hash ^ UInt32(byte)) &* 16_777_619 }
        func mixWide(_ value: Int64) {
            for shift in 0..<8 { mix(UInt8(truncatingIfNeeded: value >> (shift * 8))) }
        }
        mix(mode.rawValue)
        mix(setCookie.rawValue)
        mix(trustsAge ? 1 : 0)
        mixWide(heuristicPercent)
        mixWide(heuristicCeilingSeconds)
        for (status, seconds) in lifetimesByStatus.sorted(by: { $0.key < $1.key }) {
            mixWide(Int64(status))
            mixWide(seconds)
        }
        for name in targetedFields {
            for byte in name.canonicalName.utf8 { mix(byte) }
            mix(0)
        }
        return hash
    }
}

extension HTTPField.Name {
    /// `CDN-Cache-Control` (RFC 9213 section 3.1).
    public static let cdnCacheControl = HTTPField.Name("CDN-Cache-Control")!
    /// `Cache-Status` (RFC 9211).
    public static let cacheStatus = HTTPField.Name("Cache-Status")!
    /// `Cache-Groups` (RFC 9875 section 2).
    public static let cacheGroups = HTTPField.Name("Cache-Groups")!
    /// `Cache-Group-Invalidation` (RFC 9875 section 3).
    public static let cacheGroupInvalidation = HTTPField.Name("Cache-Group-Invalidation")!
    /// `No-Vary-Search` (draft-ietf-httpbis-no-vary-search-10).
    public static let noVarySearch = HTTPField.Name("No-Vary-Search")!
    static let hostField = HTTPField.Name("Host")!
    static let pragma = HTTPField.Name("Pragma")!
}

/// The number of users of a cache: one, or several (RFC 9111 section 1).
public enum CacheMode: UInt8, Sendable, Hashable {
    /// Dedicated to a single user, like a browser's: `private` responses may be stored, `s-maxage` and
    /// `proxy-revalidate` do not apply.
    case `private` = 0
    /// Reused by more than one user, like a gateway's: the restrictions on private and authenticated responses apply.
    case shared = 1
}
