import ArgumentParser
import CachectlCore
import HTTPTypes
import Larder
import LarderHTTP
import LarderNIOTransport
import SystemPackage

/// `fetch URL`: a response, from the store or from the network.
struct FetchCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "fetch",
        abstract: "Fetch a URL through the cache.",
        discussion: """
            Writes the body to standard output or a file. Stores responses as a private cache does (RFC 9111). \
            Policies: \(CachePolicy.named.map(\.name).joined(separator: ", ")); they can be combined. Any status of \
            the origin counts as success unless --fail is given. Exits 1 if loading is not allowed and nothing usable \
            is stored, and 69 if the origin cannot be reached. A user name and password in the URL are sent as \
            Authorization, and not stored.
            """)

    @OptionGroup var options: StoreOptions

    @Argument(help: "The URL, http or https.")
    var url: String

    @Option(
        name: [.customShort("X"), .customLong("request")],
        help: ArgumentHelp("The method. Default: GET, with --data POST, with --head HEAD.", valueName: "method"))
    var method: String?

    @Option(
        name: [.customShort("H"), .customLong("header")],
        help: ArgumentHelp("A request field, 'Name: value'; repeatable.", valueName: "field"),
        transform: FieldArgument.parseSent)
    var headers: [HTTPField] = []

    @Option(
        name: [.short, .long], help: ArgumentHelp("The content of the request; @FILE reads a file.", valueName: "data"))
    var data: String?

    @Option(
        help: ArgumentHelp("A policy; repeatable.", valueName: "name"),
        completion: .list(CachePolicy.named.map(\.name)))
    var policy: [String] = []

    @Flag(help: "Do not connect to the network.")
    var offline = false

    @Option(
        help: ArgumentHelp("Override how long the response is fresh: 60, 12h.", valueName: "duration"),
        transform: DurationArgument.parse)
    var secondsToCache: Duration?

    @Flag(help: "Store the response even if it forbids that.")
    var disrespect = false

    @Option(help: ArgumentHelp("A tag for the entry; repeatable.", valueName: "name"))
    var tag: [String] = []

    @Option(
        help: ArgumentHelp("Timeout for the connection, and for each part of the response.", valueName: "duration"),
        transform: DurationArgument.parseTimeout)
    var timeout: Duration?

    @Flag(name: [.customShort("L"), .customLong("location")], help: "Follow redirects, at most 10.")
    var follow = false

    @Flag(name: [.short, .long], help: "If the status is 400 or more, exit 1 and do not write the body.")
    var fail = false

    @Flag(name: .short, help: "Write the status and the fields before the body.")
    var include = false

    @Flag(name: [.customShort("I"), .customLong("head")], help: "Send HEAD, and write the status and the fields.")
    var head = false

    @Flag(name: [.short, .long], help: "Show request and response on standard error.")
    var verbose = false

    @Option(
        name: [.short, .customLong("output")],
        help: ArgumentHelp("Write to this file, and replace it if it exists. - is standard output.", valueName: "file"),
        completion: .file())
    var output: String?

    @Flag(
        name: [.customShort("O"), .customLong("remote-name")],
        help: "Name the file after the last part of the URL's path.")
    var remoteName = false

    func validate() throws {
        if let method, HTTPRequest.Method(method) == nil {
            throw ValidationError("--request: '\(method)' is not a valid method.")
        }
        if head, method != nil || data != nil {
            throw ValidationError("--head cannot be combined with --request or --data.")
        }
        if remoteName, output != nil { throw ValidationError("Give --output or --remote-name, not both.") }
        _ = try policies()
    }

    func run() throws {
        Interruption.listen()
        let step = try FetchStep(
            url: url, method: method ?? (head ? "HEAD" : data == nil ? "GET" : "POST"), fields: headers,
            content: try data.map(Self.content))
        let target = try remoteName ? Self.fileName(step.url) : output
        var fetchOptions = FetchOptions(
            policy: try policies(), secondsToCache: secondsToCache?.components.seconds,
            respectsCacheControl: disrespect ? false : nil, isOffline: offline, tags: tag)
        if let timeout { fetchOptions.timeouts = Timeouts(connect: timeout, read: timeout, write: timeout) }
        try options.withStore(.creating) { store in
            let transport = NIOTransport()
            var configuration = HTTPCacheConfiguration()
            // Asked for explicitly: whatever its age (RFC 9111 section 4.2.4).
            if offline { configuration.caching.disconnectedStaleLimitSeconds = .max }
            let cache = HTTPCache(store: store, transport: transport, configuration: configuration)
            do {
                let (last, response) = try answer(step, cache, fetchOptions)
                try write(response, of: last, to: target)
                // A validation in the background may still be running.
                try Blocking.run {
                    await cache.drain()
                    await transport.close()
                }
            } catch let error as FetchError {
                throw Self.failure(error)
            }
        }
    }

    // MARK: The request

    /// The response to the request, or to the last request of a chain of redirects.
    private func answer(
        _ first: FetchStep, _ cache: HTTPCache, _ fetchOptions: FetchOptions
    ) throws -> (FetchStep, FetchResponse) {
        var step = first
        for _ in 0...10 {
            if verbose { Output.complain(step.trace) }
            let current = step
            let response = try Blocking.run {
                try await cache.fetch(current.request, body: current.content.map { RequestBody($0) }, fetchOptions)
            }
            if verbose { Output.complain(FetchTrace.text(response)) }
            guard follow, let next = try step.redirected(by: response.head) else { return (step, response) }
            // Read the body, so that it is stored and the connection can be reused.
            try Self.read(response.body) { _ in }
            step = next
        }
        throw CommandError(.unavailable, "\(first.url) redirects more than 10 times, last to \(step.url)")
    }

    private func policies() throws -> CachePolicy {
        try policy.reduce(into: CachePolicy.useDefault) { set, name in
            guard let found = CachePolicy.named.first(where: { $0.name == name }) else {
                throw ValidationError(
                    "--policy: '\(name)' is not a policy. Use \(CachePolicy.named.map(\.name).joined(separator: ", "))."
                )
            }
            set.formUnion(found.policy)
        }
    }

    private static func content(_ text: String) throws -> [UInt8] {
        text.hasPrefix("@") ? try FileInput.bytes(of: FilePath(String(text.dropFirst()))) : Array(text.utf8)
    }

    /// The last part of a URL's path.
    private static func fileName(_ url: String) throws -> String {
        let path = url.drop { $0 != ":" }.dropFirst(3).prefix { $0 != "?" && $0 != "#" }
        let parts = path.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count > 1, let name = parts.last, !["", ".", ".."].contains(name) else {
            throw CommandError(
                .usage, "--remote-name: the path of \(url) does not end with a file name; use --output FILE")
        }
        return String(name)
    }

    // MARK: The answer

    private func write(_ response: FetchResponse, of step: FetchStep, to target: String?) throws {
        if fail, response.head.status.code >= 400 {
            try Self.read(response.body) { _ in }
            var error = CommandError(
                .found, "\(step.url) answered \(response.head.status.code) \(response.head.status.reasonPhrase)")
            error.code = "status"
            throw error
        }
        if options.json {
            try Output.write(JSON.text(FetchJSON(url: step.url, response)))
        } else if include || head {
            try Output.write(FetchTrace.head(response.head, "", "\n") + "\n")
        }
        if let target, target != "-" {
            try FileOutput.replace(FilePath(target)) { file in
                try Self.read(response.body) { try file.writeAll($0) }
            }
        } else {
            // With --json the body is read, so that it is stored, but not written.
            var sink = OutputSink(isForced: target != nil)
            try Self.read(response.body) { if !options.json { try sink.write($0) } }
        }
    }

    static func read(_ body: ResponseBody, _ write: (UnsafeRawBufferPointer) throws -> Void) throws {
        var iterator = body.makeAsyncIterator()
        while true {
            let (piece, next) = try Blocking.run { [iterator] in
                var current = iterator
                let piece = try await current.next()
                return (piece, current)
            }
            guard let piece else { return }
            iterator = next
            try piece.withUnsafeBytes(write)
        }
    }

    static func failure(_ error: FetchError) -> CommandError {
        let status: ExitStatus
        switch error.code {
        case .invalidURL, .unknownPolicy, .policyFailed: status = .usage
        case .notCached: status = .found
        case .cancelled: status = .interrupted
        case .overloaded, .timedOut: status = .temporary
        case .tooLarge: status = .data
        default: status = .unavailable
        }
        var result = CommandError(status, error.message)
        result.code = error.code.description
        return result
    }
}

/// `fetch --json`.
private struct FetchJSON: Encodable {
    let url: String
    let status: Int
    let source: String
    @Nullable var storedStatus: Int?
    @Nullable var originStatus: Int?
    @Nullable var ageSeconds: Int64?
    @Nullable var freshSeconds: Int64?
    let isStored: Bool
    let fields: [[String]]

    init(url: String, _ response: FetchResponse) {
        self.url = url
        status = response.head.status.code
        source = response.source.rawValue
        storedStatus = response.storedStatus
        originStatus = response.originStatus
        ageSeconds = response.ageSeconds
        freshSeconds = response.freshSeconds
        isStored = response.isStored
        fields = response.head.headerFields.map { [$0.name.rawName, $0.value] }
    }
}
