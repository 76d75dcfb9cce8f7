import Foundation
import HTTPTypes
import LarderHTTP

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A request of a session on its way into the cache: one for each redirect.
struct OutgoingMessage: Sendable {
    /// The content of a request.
    enum Body: Sendable {
        case data(Data)
        case stream(StreamedContent)

        var requestBody: RequestBody {
            switch self {
            case .data(let data): RequestBody([UInt8](data))
            case .stream(let stream): RequestBody(length: nil) { try await stream.next() }
            }
        }
    }

    /// Without user information, which is in ``fields`` then.
    var url: URL
    var method: HTTPRequest.Method
    var fields: HTTPFields
    var body: Body?
    /// False for content that can be read once.
    var canBeSentAgain: Bool {
        if case .stream? = body { return false }
        return true
    }
    private let mainDocument: URL?
    private let handlesCookies: Bool

    /// The URL without its fragment.
    var urlText: String { String(url.absoluteString.prefix { $0 != "#" }) }

    /// The first request.
    init(_ request: URLRequest, _ settings: SessionSettings) throws {
        guard let given = request.url else { throw URLError(.badURL, nil, "the request has no URL") }
        let (url, authorization) = Self.withoutUser(given)
        let name = request.httpMethod ?? "GET"
        guard let method = HTTPRequest.Method(rawValue: name) else {
            throw URLError(.badURL, url, "'\(name)' is not a method")
        }
        self.url = url
        self.method = method
        fields = try Self.fields(request, settings, url)
        if let authorization, fields[.authorization] == nil { fields[.authorization] = authorization }
        if let data = request.httpBody, !data.isEmpty {
            body = .data(data)
        } else if let stream = request.httpBodyStream {
            body = .stream(StreamedContent(stream))
        }
        mainDocument = request.mainDocumentURL
        handlesCookies = request.httpShouldHandleCookies
        if fields[.cookie] == nil { addCookies(settings) }
    }

    private static func fields(
        _ request: URLRequest, _ settings: SessionSettings, _ url: URL
    ) throws -> HTTPFields {
        var fields = HTTPFields()
        var given = request.allHTTPHeaderFields ?? [:]
        let names = Set(given.keys.map { $0.lowercased() })
        for (name, value) in settings.additionalFields where !names.contains(name.lowercased()) { given[name] = value }
        for (name, value) in given.sorted(by: { $0.key < $1.key }) {
            guard let fieldName = HTTPField.Name(name), HTTPField.isValidValue(value) else {
                throw URLError(.badURL, url, "the header field '\(name)' has a character that is not allowed")
            }
            fields.append(HTTPField(name: fieldName, value: value))
        }
        return fields
    }

    /// Takes `user:password@` out of a URL, for `Authorization` (RFC 9110 section 4.2.4 forbids to send it).
    private static func withoutUser(_ url: URL) -> (URL, String?) {
        guard url.user != nil, var parts = URLComponents(url: url, resolvingAgainstBaseURL: true) else {
            return (url.absoluteURL, nil)
        }
        let credential = URLCredential(
            user: parts.user ?? "", password: parts.password ?? "", persistence: .none)
        parts.user = nil
        parts.password = nil
        return (parts.url ?? url, credential.basicAuthorization)
    }

    // MARK: Cookies

    private mutating func addCookies(_ settings: SessionSettings) {
        guard settings.addsCookies, handlesCookies, let cookies = settings.cookies?.cookies(for: url), !cookies.isEmpty
        else { return }
        fields[.cookie] = HTTPCookie.requestHeaderFields(with: cookies)["Cookie"]
    }

    /// Keeps the cookies of a response that came from the network just now.
    func storeCookies(of head: HTTPResponse, _ settings: SessionSettings) {
        guard settings.acceptsCookies, handlesCookies, let storage = settings.cookies else { return }
        let values = head.headerFields[values: .setCookie]
        guard !values.isEmpty else { return }
        let cookies = HTTPCookie.cookies(
            withResponseHeaderFields: ["Set-Cookie": values.joined(separator: ", ")], for: url)
        storage.setCookies(cookies, for: url, mainDocumentURL: mainDocument)
    }

    // MARK: Redirects

    /// The request that a redirect leads to (RFC 9110 section 15.4); nil for any other response.
    func redirected(by response: HTTPURLResponse, _ settings: SessionSettings) throws -> OutgoingMessage? {
        guard [301, 302, 303, 307, 308].contains(response.statusCode),
            let location = response.value(forHTTPHeaderField: "Location"),
            let target = URL(string: location, relativeTo: url)?.absoluteURL
        else { return nil }
        guard let scheme = target.scheme?.lowercased(), scheme == "http" || scheme == "https", target.host != nil else {
            throw URLError(.unsupportedURL, target, "\(url) redirects to \(target), which is neither http nor https")
        }
        var next = self
        let (plain, authorization) = Self.withoutUser(target)
        next.url = plain
        // Section 10.2.2: the fragment of the request counts where the location has none.
        if plain.fragment == nil, let fragment = url.fragment,
            var parts = URLComponents(url: plain, resolvingAgainstBaseURL: true)
        {
            parts.fragment = fragment
            next.url = parts.url ?? plain
        }
        let code = response.statusCode
        if code == 303 && method != .head || (code == 301 || code == 302) && method == .post {
            next.method = method == .head ? .head : .get
            next.body = nil
            for name in Self.contentFields { next.fields[name] = nil }
        } else if case .stream? = body {
            throw URLError(
                .requestBodyStreamExhausted, target, "a stream cannot be sent a second time, to \(target)")
        }
        if !next.isSameOrigin(as: url) {
            for name in Self.secretFields { next.fields[name] = nil }
        }
        if let authorization { next.fields[.authorization] = authorization }
        if handlesCookies, settings.addsCookies, settings.cookies != nil {
            next.fields[.cookie] = nil
            next.addCookies(settings)
        }
        return next
    }

    /// What describes content that is not sent on.
    private static let contentFields: [HTTPField.Name] = [
        .contentType, .contentEncoding, .contentLanguage, .contentLocation, .contentLength, .contentDisposition,
        .contentRange,
    ]

    /// What is for the first server alone. `Host` would name the wrong one.
    private static let secretFields: [HTTPField.Name] = [
        .authorization, .proxyAuthorization, .cookie, HTTPField.Name("Host")!,
    ]

    /// Whether scheme, host and port are those of another URL.
    func isSameOrigin(as other: URL) -> Bool {
        func origin(_ url: URL) -> String {
            let scheme = url.scheme?.lowercased() ?? ""
            return "\(scheme)://\(url.host?.lowercased() ?? ""):\(url.port ?? (scheme == "https" ? 443 : 80))"
        }
        return origin(url) == origin(other)
    }

    /// The message as a request of the session that the first request came from.
    func urlRequest(like first: URLRequest) -> URLRequest {
        var result = first
        result.url = url
        result.httpMethod = method.rawValue
        result.allHTTPHeaderFields = NetworkFields.dictionary(fields)
        if body == nil {
            result.httpBody = nil
            result.httpBodyStream = nil
        }
        return result
    }
}

/// The content of a request that comes from a stream.
final class StreamedContent: Sendable {
    private static let pieceLength = 64 << 10

    // SAFETY: read by one task at a time, the one that sends the request, on one thread at a time.
    private nonisolated(unsafe) let stream: InputStream

    init(_ stream: InputStream) { self.stream = stream }

    /// The next piece; nil at the end. The cooperative pool does not wait for the stream.
    func next() async throws -> [UInt8]? {
        try await withCheckedThrowingContinuation { (waiter: CheckedContinuation<[UInt8]?, any Error>) in
            DispatchQueue.global().async { [self] in waiter.resume(with: Result { try read() }) }
        }
    }

    private func read() throws -> [UInt8]? {
        if stream.streamStatus == .notOpen { stream.open() }
        var bytes = [UInt8](repeating: 0, count: Self.pieceLength)
        let count = stream.read(&bytes, maxLength: bytes.count)
        if count < 0 { throw stream.streamError ?? CocoaError(.fileReadUnknown) }
        if count == 0 {
            stream.close()
            return nil
        }
        return Array(bytes.prefix(count))
    }
}
