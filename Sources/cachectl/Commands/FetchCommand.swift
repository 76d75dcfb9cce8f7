import ArgumentParser
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
            Writes the body to standard output or a file. What may be stored is stored, as a private cache does (RFC 9111). \
            Policies: \(CachePolicy.named.map(\.name).joined(separator: ", ")); several combine. Every status counts as an \
            answer; exits 1 if nothing usable is stored and loading is not allowed, 69 if the origin cannot be reached.
            """)

    @OptionGroup var options: StoreOptions

    @Argument(help: "The URL, http or https.")
    var url: String

    @Option(name: [.customShort("X"), .customLong("request")], help: ArgumentHelp("The method.", valueName: "method"))
    var method = "GET"

    @Option(
        name: [.customShort("H"), .customLong("header")],
        help: ArgumentHelp("A request field, 'Name: value'; may be given several times.", valueName: "field"))
    var headers: [String] = []

    @Option(name: [.short, .long], help: ArgumentHelp("The request's content; @FILE takes a file.", valueName: "data"))
    var data: String?

    @Option(help: ArgumentHelp("A policy; may be given several times.", valueName: "name"))
    var policy: [String] = []

    @Flag(help: "Attempt no connection.")
    var offline = false

    @Option(help: ArgumentHelp("Take the response to be fresh for so many seconds.", valueName: "n"))
    var secondsToCache: Int64?

    @Flag(help: "Store the response even if it says not to.")
    var disrespect = false

    @Option(help: ArgumentHelp("A tag for the entry; may be given several times.", valueName: "name"))
    var tag: [String] = []

    @Option(
        help: ArgumentHelp("Wait so long for a connection, and for each piece of the answer.", valueName: "seconds"))
    var timeout: Double?

    @Flag(name: .short, help: "Write status and fields before the body.")
    var include = false

    @Option(
        name: [.short, .customLong("output")], help: ArgumentHelp("Write here; replaces the file.", valueName: "file"))
    var output: String?

    func validate() throws {
        if HTTPRequest.Method(method) == nil { throw ValidationError("--request \(method): that is no method.") }
        if let secondsToCache, secondsToCache < 0 { throw ValidationError("--seconds-to-cache: give 0 or more.") }
        if let timeout, !(timeout > 0 && timeout < 1e6) {
            throw ValidationError("--timeout \(timeout): give more than 0.")
        }
        _ = try policies()
        for header in headers { _ = try Self.field(header) }
    }

    func run() throws {
        Interruption.listen()
        let request = try makeRequest()
        let body = try data.map { RequestBody(try Self.content($0)) }
        var fetchOptions = FetchOptions(
            policy: try policies(), secondsToCache: secondsToCache, respectsCacheControl: disrespect ? false : nil,
            isOffline: offline, tags: tag)
        if let timeout {
            let time = Duration.seconds(timeout)
            fetchOptions.timeouts = Timeouts(connect: time, read: time, write: time)
        }
        try options.withStore(.creating) { store in
            let transport = NIOTransport()
            let cache = HTTPCache(store: store, transport: transport)
            do {
                try write(Blocking.run { [fetchOptions] in try await cache.fetch(request, body: body, fetchOptions) })
                // A validation in the background may still be under way.
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

    private func makeRequest() throws -> HTTPRequest {
        do {
            var request = try HTTPCache.request(for: url, method: HTTPRequest.Method(method) ?? .get)
            for header in headers { request.headerFields.append(try Self.field(header)) }
            return request
        } catch let error as FetchError {
            throw Self.failure(error)
        }
    }

    private func policies() throws -> CachePolicy {
        try policy.reduce(into: CachePolicy.useDefault) { set, name in
            guard let found = CachePolicy.named.first(where: { $0.name == name }) else {
                throw ValidationError(
                    "--policy \(name): there are \(CachePolicy.named.map(\.name).joined(separator: ", ")).")
            }
            set.formUnion(found.policy)
        }
    }

    private static func field(_ text: String) throws -> HTTPField {
        guard let colon = text.firstIndex(of: ":"), let name = HTTPField.Name(String(text[..<colon])) else {
            throw ValidationError("--header '\(text)': give 'Name: value'.")
        }
        return HTTPField(name: name, value: String(text[text.index(after: colon)...].drop { $0 == " " }))
    }

    private static func content(_ text: String) throws -> [UInt8] {
        text.hasPrefix("@") ? try FileInput.bytes(of: FilePath(String(text.dropFirst()))) : Array(text.utf8)
    }

    // MARK: The answer

    private func write(_ response: FetchResponse) throws {
        if options.json {
            try Output.write(JSON.text(FetchJSON(url: url, response)))
        } else if include {
            var head = "HTTP/1.1 \(response.head.status.code) \(response.head.status.reasonPhrase)\n"
            for field in response.head.headerFields { head += "\(field.name.rawName): \(field.value)\n" }
            try Output.write(head + "\n")
        }
        if let output {
            try FileOutput.replace(FilePath(output)) { file in
                try Self.read(response.body) { try file.writeAll($0) }
            }
        } else {
            // With --json the body is read so that it is stored, and not written.
            try Self.read(response.body) { if !options.json { try Output.write($0) } }
        }
    }

    private static func read(_ body: ResponseBody, _ write: (UnsafeRawBufferPointer) throws -> Void) throws {
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
        switch error.kind {
        case .invalidURL, .unknownPolicy, .policyFailed: status = .usage
        case .notCached: status = .found
        case .cancelled: status = .interrupted
        case .overloaded, .timedOut: status = .temporary
        case .origin: status = .unavailable
        case .tooLarge: status = .data
        }
        var result = CommandError(status, error.message)
        result.code = error.kind.rawValue
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
