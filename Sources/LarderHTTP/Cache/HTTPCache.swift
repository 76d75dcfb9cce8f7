import HTTPCaching
import HTTPTypes
import Larder
import Locks

/// An HTTP cache: the rules of RFC 9111 joined with a store and a transport.
///
///     let cache = HTTPCache(store: store, transport: NIOTransport())
///     let answer = try await cache.fetch("https://example.org/")
///     print(answer.source, answer.head.status, try await answer.body.bytes().count)
///
/// Safe to use from any thread and task. Several caches, in this process or others, may share one store.
public final class HTTPCache: Sendable {
    /// The store behind it. The cache does not touch other entries in it.
    public let store: Store
    /// The configuration that the cache was made with. Settings that may have changed since: ``defaultPolicy``,
    /// ``defaultPolicyID``, ``respectsCacheControl``, ``defaultLifetimeSeconds``.
    public let configuration: HTTPCacheConfiguration
    let context: CacheContext
    let plainHits: PlainHitLookup
    let changes: StoreChanges
    let loader: Loader
    /// Nil where there is no way beside the loads.
    let relay: Relay?
    let questions: Questions
    private let answering: Answering
    private let origin: OriginClient
    private let offline = Atomic<Bool>(false)

    /// Joins a store and a transport.
    ///
    /// - Parameters:
    ///   - store: an open store, which the caller closes, after ``drain()``.
    ///   - transport: carries requests to origins.
    ///   - configuration: the settings of the cache.
    public init(
        store: Store, transport: any Transport, configuration: HTTPCacheConfiguration = HTTPCacheConfiguration()
    ) {
        self.store = store
        self.configuration = configuration
        context = CacheContext(configuration)
        let responses = ResponseStore(
            store: store, rules: context.rules, retention: configuration.retention,
            compressesBodies: configuration.compressesBodies, now: { [context] in context.now })
        let generations = Generations(configuration.clock)
        let watch = StoreWatch(configuration.logger)
        let lookup = Lookup(responses, watch)
        let builder = AnswerBuilder(context)
        plainHits = PlainHitLookup(context, responses)
        changes = StoreChanges(
            context: context, store: store, responses: responses, generations: generations, watch: watch)
        questions = Questions(context, generations)
        answering = Answering(context, lookup, builder)
        origin = OriginClient(context, transport)
        loader = Loader(context, questions, answering, builder, lookup, changes, origin)
        relay = Relay(context, transport, origin, loader)
    }

    /// Offline mode: while true no connection is attempted, and a fetch of a response that is not stored ends with
    /// ``FetchError/Code/notCached``. Stale responses are used if RFC 9111 section 4.2.4 allows it for a disconnected
    /// cache.
    public var isOffline: Bool {
        get { offline.load(ordering: .relaxed) }
        set { offline.store(newValue, ordering: .relaxed) }
    }

    /// Memory of loads, in bytes: the bytes that they hold for their readers and for the store, those that the
    /// transport has read ahead, and the memory of their tasks. Bytes that ``ResponseBody`` has returned are not
    /// counted. Updated with each piece.
    public var heldBytes: Int { loader.held.count + origin.heldBytes }

    // MARK: Fetching

    /// Answers a request from the store or from the origin, and stores the response if that is allowed.
    ///
    /// - Parameters:
    ///   - request: scheme (`http` or `https`), authority, path and fields. Fields of one connection are not passed on.
    ///   - body: the request's content; nil for none.
    ///   - options: settings of this request that differ from the configuration.
    ///   - onInformational: called for interim (1xx) responses.
    /// - Returns: the answer when its head has arrived; the body may still be arriving. Every answer of the origin
    ///   counts, whatever its status.
    /// - Throws: ``FetchError``, and nothing else.
    public func fetch(
        _ request: HTTPRequest, body: RequestBody? = nil, _ options: FetchOptions = FetchOptions(),
        onInformational: (@Sendable (HTTPResponse) async -> Void)? = nil
    ) async throws(FetchError) -> FetchResponse {
        switch try await answer(request, hasContent: body != nil, body: body, options) {
        case .response(let response): return options.watched(response)
        case .load(let pending):
            return options.watched(try await load(pending, body: body, onInformational: onInformational))
        }
    }

    /// Fetches a URL with GET.
    ///
    /// - Parameters:
    ///   - url: absolute, with `http` or `https`.
    ///   - options: settings of this request that differ from the configuration.
    /// - Returns: the answer when its head has arrived; the body may still be arriving.
    /// - Throws: ``FetchError``, ``FetchError/Code/invalidURL`` included.
    public func fetch(_ url: String, _ options: FetchOptions = FetchOptions()) async throws(FetchError) -> FetchResponse
    {
        try await fetch(Self.request(for: url), body: nil, options)
    }

    /// The request for a URL, with its parts in the right properties.
    ///
    /// - Parameters:
    ///   - url: absolute, with `http` or `https`. A fragment is left out.
    ///   - method: default GET.
    /// - Returns: a request without fields.
    /// - Throws: ``FetchError/Code/invalidURL`` for another scheme, a character that has to be percent-encoded, or a
    ///   host or port that is not valid.
    public static func request(for url: String, method: HTTPRequest.Method = .get) throws(FetchError) -> HTTPRequest {
        func invalid(_ why: String) -> FetchError {
            FetchError(.invalidURL, url: url, "'\(url)' is not a valid URL: \(why)")
        }
        guard let colon = url.firstRange(of: "://") else { throw invalid("it has no scheme, such as https://") }
        let scheme = url[..<colon.lowerBound].lowercased()
        guard scheme == "http" || scheme == "https" else { throw invalid("the scheme is neither http nor https") }
        guard url.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
            throw invalid("it has a character that has to be percent-encoded")
        }
        let rest = url[colon.upperBound...].prefix { $0 != "#" }
        let authority = rest.prefix { $0 != "/" && $0 != "?" }
        var path = String(rest[authority.endIndex...])
        if !path.hasPrefix("/") { path = "/" + path }
        let request = HTTPRequest(method: method, scheme: scheme, authority: String(authority), path: path)
        guard CacheRules().cacheKey(for: request) != nil else { throw invalid("the host or the port is not valid") }
        return request
    }

    // MARK: Answering

    /// The store's immediate answer to a request under the cache's default options: for an event loop. If it would have
    /// to wait for a disk, the answer is to load, which looks up the store again.
    package func answer(_ request: HTTPRequest, hasContent: Bool) throws(FetchError) -> LocalAnswer {
        let question = try question(request, hasContent: hasContent, body: nil, FetchOptions())
        return settle(try answering.answerAtOnce(question))
    }

    /// The store's answer to a request; the cooperative pool does not wait.
    package func answer(
        _ request: HTTPRequest, hasContent: Bool, body: RequestBody?, _ options: FetchOptions
    ) async throws(FetchError) -> LocalAnswer {
        try await loader.answer(try question(request, hasContent: hasContent, body: body, options))
    }

    /// As above, waiting on the calling thread.
    func answerWaiting(
        _ request: HTTPRequest, hasContent: Bool, body: RequestBody?, _ options: FetchOptions
    ) throws(FetchError) -> LocalAnswer {
        let question = try question(request, hasContent: hasContent, body: body, options)
        return settle(try answering.answerWaiting(question))
    }

    func question(
        _ request: HTTPRequest, hasContent: Bool, body: RequestBody?, _ options: FetchOptions
    ) throws(FetchError) -> Question {
        try questions.question(request, hasContent: hasContent, body: body, options, isOffline: isOffline)
    }

    private func settle(_ result: LocalResult) -> LocalAnswer {
        if let refresh = result.refresh { loader.refresh(refresh) }
        return result.answer
    }

    /// Loads a response that the store could not give. Returns when the head of the answer has arrived.
    ///
    /// ``Timeouts/total`` applies to each caller separately: if other callers wait for a load, it continues without a
    /// caller whose time is over.
    ///
    /// - Parameter begun: what the same request began without a task, if it did.
    package func load(
        _ pending: LoadRequest, body: RequestBody?, continuing begun: BegunLoad? = nil,
        onInformational: (@Sendable (HTTPResponse) async -> Void)?
    ) async throws(FetchError) -> FetchResponse {
        var pending = pending
        if let begun { pending.take(begun) }
        return try await loader.load(pending, body: body, onInformational: onInformational)
    }

    // MARK: Cancelling

    /// Cancels every load of a URL; callers that wait for one get ``FetchError/Code/cancelled``.
    ///
    /// - Parameter url: compared in the form of keys (RFC 9110 section 4.2.3): the case of scheme and host, a default
    ///   port, an empty path and a fragment make no difference.
    /// - Returns: the number of loads cancelled.
    @discardableResult
    public func cancel(url: String) -> Int {
        let wanted = Self.normalized(url)
        return loader.active.cancel { Self.normalized($0.url) == wanted }
    }

    private static func normalized(_ url: String) -> String {
        guard let request = try? request(for: url), let key = CacheRules().cacheKey(for: request) else { return url }
        return key.uri
    }

    /// Cancels every load; callers that wait for one get ``FetchError/Code/cancelled``.
    ///
    /// - Returns: the number of loads cancelled.
    @discardableResult
    public func cancelAll() -> Int { loader.active.cancel { _ in true } }

    /// Requests that wait because their host, or all hosts together, have as many requests as they may.
    public var waitingRequests: Int { origin.waitingRequests }

    /// Returns when no load is under way, including validations in the background and bodies that are still arriving.
    public func drain() async { await loader.active.drain() }
}

extension FetchOptions {
    /// The response, with ``onProgress`` called for every piece read.
    package func watched(_ response: FetchResponse) -> FetchResponse {
        guard let onProgress else { return response }
        var result = response
        let reading = Reading(response.body.makeAsyncIterator())
        let total = response.body.length
        result.body = ResponseBody(length: total, holder: response.body.holder) {
            let piece = try await reading.next()
            if let piece { onProgress(FetchProgress(bytes: reading.add(piece.count), total: total)) }
            return piece
        }
        return result
    }

    /// An iterator that a closure can hold: one reader at a time uses it.
    private final class Reading: Sendable {
        private let iterator: Mutex<ResponseBody.Iterator>
        private let bytes = Atomic<Int64>(0)
        init(_ iterator: ResponseBody.Iterator) { self.iterator = Mutex(iterator) }

        func next() async throws -> [UInt8]? {
            var current = iterator.withLock { $0 }
            let piece = try await current.next()
            iterator.withLock { [current] held in held = current }
            return piece
        }

        func add(_ count: Int) -> Int64 { bytes.add(Int64(count), ordering: .relaxed).newValue }
    }
}
