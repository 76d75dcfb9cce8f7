import CachectlCore
import HTTPTypes
import LarderHTTP

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// One request of `fetch`: the first, or one that a redirect leads to.
struct FetchStep: Sendable {
    /// The URL without user name and password.
    let url: String
    let request: HTTPRequest
    let content: [UInt8]?

    /// Removes the user name and the password from the URL, so that no key contains them. They are sent as
    /// `Authorization` (RFC 7617), unless `fields` has that field.
    /// - Throws: `usage` if the URL is not valid.
    init(url: String, method: String, fields: [HTTPField], content: [UInt8]?) throws {
        let (plain, credentials) = Self.split(url)
        self.url = plain
        self.content = content
        var request = try Self.request(plain, method)
        for field in fields { request.headerFields.append(field) }
        if let credentials, !request.headerFields.contains(.authorization) {
            request.headerFields[.authorization] = "Basic " + JSON.base64(credentials)
        }
        self.request = request
    }

    private static func request(_ url: String, _ method: String) throws -> HTTPRequest {
        do {
            return try HTTPCache.request(for: url, method: HTTPRequest.Method(method) ?? .get)
        } catch {
            throw FetchCommand.failure(error)
        }
    }

    /// The request that a response redirects to (RFC 9110 section 15.4); nil if it does not redirect to an HTTP URL.
    func redirected(by response: HTTPResponse) throws -> FetchStep? {
        guard [301, 302, 303, 307, 308].contains(response.status.code),
            let location = response.headerFields[.location],
            let target = URL(string: location, relativeTo: URL(string: url))?.absoluteString,
            ["http", "https"].contains(target.prefix { $0 != ":" }.lowercased())
        else { return nil }
        // "a user agent MAY change the request method from POST to GET" for 301 and 302, and all do; 303 requires it.
        let turnsToGet =
            request.method != .get && request.method != .head
            && (response.status.code == 303 || request.method == .post && response.status.code < 303)
        var fields = Array(request.headerFields)
        // Credentials for one server must not reach another.
        if Self.origin(target).lowercased() != Self.origin(url).lowercased() {
            fields.removeAll { [.authorization, .cookie].contains($0.name) }
        }
        return try FetchStep(
            url: target, method: turnsToGet ? "GET" : request.method.rawValue, fields: fields,
            content: turnsToGet ? nil : content)
    }

    /// The request as `--verbose` shows it.
    var trace: String {
        var text = "> \(request.method.rawValue) \(request.path ?? "/") HTTP/1.1\n> Host: \(request.authority ?? "")\n"
        for field in request.headerFields {
            // Terminals keep what they show, so leave passwords out.
            text += "> \(field.name.rawName): \(field.name == .authorization ? "..." : field.value)\n"
        }
        return text + ">\n"
    }

    private static func origin(_ url: String) -> Substring {
        let start = url.firstRange(of: "://")?.upperBound ?? url.startIndex
        return url[..<(url[start...].firstIndex { "/?#".contains($0) } ?? url.endIndex)]
    }

    /// Splits off the user information, which ends at the last `@` of the authority (RFC 3986 section 3.2.1).
    private static func split(_ url: String) -> (url: String, credentials: [UInt8]?) {
        guard let start = url.firstRange(of: "://")?.upperBound else { return (url, nil) }
        let end = url[start...].firstIndex { "/?#".contains($0) } ?? url.endIndex
        guard let at = url[start..<end].lastIndex(of: "@") else { return (url, nil) }
        var credentials = PercentCoding.decode(Array(url[start..<at].utf8))
        if !url[start..<at].contains(":") { credentials.append(UInt8(ascii: ":")) }
        return (String(url[..<start] + url[url.index(after: at)...]), credentials)
    }
}
