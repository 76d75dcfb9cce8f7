import HTTPCaching
import HTTPTypes
import Larder
import Logging

/// The settings of an ``HTTPCache``.
public struct HTTPCacheConfiguration: Sendable {
    /// The rules: private or shared cache, heuristics, the responses to store. Default: a private cache.
    public var caching = CachingOptions.privateCache
    /// The meaning of ``CachePolicy/useDefault``. Default: ``CachePolicy/askIfModifiedWhenStale``.
    public var defaultPolicy = CachePolicy.askIfModifiedWhenStale
    /// The number of the registered policy for fetches that name neither a policy nor a number. Nil: ``defaultPolicy``.
    /// Default: nil.
    public var defaultPolicyID: Int?
    /// False stores responses to GET even if they have `no-store`, `private` or no directive at all, for
    /// ``defaultLifetimeSeconds``. Default: true.
    public var respectsCacheControl = true
    /// The freshness in seconds of a response that is stored against its will and has no lifetime of its own. Default:
    /// 3,600.
    public var defaultLifetimeSeconds: Int64 = 3_600
    /// Overrides the lifetime of every response, in seconds; the response's own `no-store` still holds. Nil: its own.
    public var secondsToCache: Int64?
    /// The storage policy: it decides if responses are kept across sessions. Default: permanent.
    public var storagePolicy = StoragePolicy.permanent
    /// The policy that makes keys. Default: the target URI.
    public var keyPolicy = KeyPolicy()
    /// The content codings that count in `Accept-Encoding`, the best first, such as `["br", "gzip"]`. The field of each
    /// request is replaced by the listed codings that the client accepts, or by `identity`, before it selects a stored
    /// response and before it is sent to the origin. This gives a few variants instead of one for each spelling of the
    /// field. A request that refuses `identity` is not changed. Default: none, the field stays as it is.
    public var foldedContentCodings: [String] = []
    /// True stores responses to QUERY, under a key that includes the content of the request, its media type, coding and
    /// language (RFC 10008 section 2.7). Default: true.
    public var cachesQueries = true
    /// The most content of a QUERY that is held to make its key, in bytes, if it arrives as a stream. Longer content is
    /// passed on as it arrives, and the response is not stored. Content that is already in memory has no limit.
    /// Default: 256 KiB.
    public var queryContentLimit = 256 << 10
    /// Policies that requests name by number.
    public var registry = PolicyRegistry()
    /// Time limits of requests to origins.
    public var timeouts = Timeouts()
    /// The policy for sending a failed request again. Default: a second attempt, if the first cannot have reached the
    /// origin.
    public var retries = RetryPolicy()
    /// Requests at the same time to one host: the server that the transport sends them to
    /// (``Transport/endpoint(for:)``), whatever its names. Requests whose content is still arriving get at most half of
    /// these places, so that slow uploads leave room for others. Further requests wait, no longer than
    /// ``Timeouts/queue``. 1 or more; default: 256.
    public var requestsPerHost = 256
    /// Requests that may wait for one host. One more fails immediately with ``FetchError/Code/overloaded``. 0 or more;
    /// default: 1,024.
    public var waitingPerHost = 1_024
    /// Requests at the same time. From 64 on, one host gets fewer as places get scarce, so that hosts that do not
    /// answer leave room for others: at most the square of the free places, divided by this number. 1 or more; default:
    /// 4,096.
    public var requestLimit = 4_096
    /// True lets misses of one key share one request (RFC 9111 section 4). Default: true.
    public var collapsesRequests = true
    /// How long after a request was sent others wait for the same answer while its head has not arrived. The next
    /// request then asks the origin itself, and those after it wait for that answer. So a request that hangs does not
    /// keep all others waiting. More than zero; default: 10 s.
    public var collapsingWindow = Duration.seconds(10)
    /// How long a miss waits for another process that has the store open and loads the same response, before it asks
    /// the origin itself. It waits only for complete responses to GET, up to 4 MiB; a longer one is followed while it
    /// arrives, if its length is known and it has a strong validator and no `Vary`. The wait takes at most half of the
    /// time that ``Timeouts/total`` leaves. Zero: no wait. Default: 5 s.
    public var otherProcessWait = Duration.seconds(5)
    /// How long an origin that failed is remembered. Nil: not at all. Default: 1 s, growing to 30 s.
    public var originFailureMemory: OriginFailureMemory? = OriginFailureMemory()
    /// The policy for a load whose last reader leaves. Default: it continues if at most 1 MiB or 25 % is missing, or at
    /// most a slice (``sliceBytes``).
    public var abandonedLoads = AbandonedLoadPolicy()
    /// Fetches large representations in slices: the range of a request that the store cannot answer is widened to
    /// multiples of this many bytes, which are stored; the client gets the range that it asked for. For players and
    /// download managers that ask for many small ranges. Useful values are 64 KiB to 16 MiB. Nil: ranges are requested
    /// unchanged. Default: nil.
    public var sliceBytes: Int64?
    /// True stores bodies compressed whose media types shrink, where that saves an eighth or more: of responses with
    /// status 200 and without `Content-Encoding` and `no-transform`. A gateway sends them as they are to clients that
    /// accept gzip. Default: false, the store's own choice.
    public var compressesBodies = false
    /// The name in `Via`, for a proxy or gateway (RFC 9110 section 7.6.3). Nil: no `Via`. Default: nil.
    public var viaName: String?
    /// True adds a `Cache-Status` (RFC 9211) to answers, under `CachingOptions.cacheName`. Default: true.
    public var addsCacheStatus = true
    /// Response fields whose members become tags, for listing and purging responses. Members are separated by commas or
    /// spaces. Default: `Cache-Tag`, `Surrogate-Key`, `xkey`.
    public var tagFields: [HTTPField.Name] = [.cacheTag, .surrogateKey, .xkey]
    /// How long a response is kept after the last moment at which it may be served without asking the origin, so that
    /// it can still be validated or serve as a fallback. The budget may displace it earlier. Default: 7 days.
    public var retention = Duration.seconds(7 * 86_400)
    /// Gives the `Authorization` for an origin (`https://example.org`), for requests without one; it is not stored.
    public var authorization: (@Sendable (_ origin: String) -> String?)?
    /// The source of time. Default: the machine's clock.
    public var clock: any StoreClock = SystemClock()
    /// Waits between two attempts, and between two checks of another process's load. Default: `ContinuousClock`.
    public var sleep: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
    /// False if an origin can only be asked while a request waits for it: a stale response is then validated first,
    /// which `stale-while-revalidate` (RFC 5861 section 3) allows. Default: true.
    package var revalidatesInBackground = true
    /// The logger for responses that could not be stored. Default: a logger labelled `larder.http`.
    public var logger = Logger(label: "larder.http")

    /// A private cache with default settings.
    public init() {}
}

extension HTTPField.Name {
    static let cacheTag = HTTPField.Name("Cache-Tag")!
    static let surrogateKey = HTTPField.Name("Surrogate-Key")!
    static let xkey = HTTPField.Name("xkey")!
    static let via = HTTPField.Name("Via")!
    static let keepAlive = HTTPField.Name("Keep-Alive")!
    static let pragma = HTTPField.Name("Pragma")!
    static let host = HTTPField.Name("Host")!
}

/// The policy for sending a failed request again.
public struct RetryPolicy: Sendable, Hashable {
    /// The most repetitions, not counting the first attempt. Default: 1.
    public var limit: Int
    /// The wait before the first repetition; it doubles each time. Default: 50 ms.
    public var delay: Duration
    /// Also repeats requests that the origin may have acted on, if their method is idempotent (RFC 9110 section 9.2.2)
    /// and their content can be read again. Default: false.
    public var repeatsIdempotent: Bool

    /// Makes a policy. Each parameter sets the property of its name, and has the default that the property states.
    public init(limit: Int = 1, delay: Duration = .milliseconds(50), repeatsIdempotent: Bool = false) {
        self.limit = limit
        self.delay = delay
        self.repeatsIdempotent = repeatsIdempotent
    }

    /// No repetitions.
    public static let none = RetryPolicy(limit: 0)
}
