import Foundation
import HTTPTypes
import LarderHTTP

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension SessionSettings {
    /// Seven days, the default of `timeoutIntervalForResource`, stand for no limit.
    private static let noResourceLimit: TimeInterval = 7 * 86_400
    /// The default of `URLRequest.timeoutInterval`: that of the configuration counts then.
    private static let defaultTimeout: TimeInterval = 60

    /// Gives a fetch what its `URLRequest` and the configuration say: cache policy and time limits.
    func apply(
        _ request: URLRequest, to options: inout FetchOptions, _ http: inout HTTPRequest, _ timeouts: Timeouts
    ) {
        let policy = request.cachePolicy == .useProtocolCachePolicy ? cachePolicy : request.cachePolicy
        // What the request says counts more than a policy by name, which is for all requests.
        if policy != .useProtocolCachePolicy { options.policyID = nil }
        let isKeptOut = options.policy.contains(.doNotWrite)
        switch policy {
        case .reloadIgnoringLocalCacheData: options.policy = .doNotRead
        case .reloadIgnoringLocalAndRemoteCacheData:
            options.policy = .doNotRead
            // RFC 9111 section 5.2.1.4; `Pragma` for caches that know nothing newer (section 5.4).
            if http.headerFields[.cacheControl] == nil { http.headerFields[.cacheControl] = "no-cache" }
            if http.headerFields[.pragma] == nil { http.headerFields[.pragma] = "no-cache" }
        case .returnCacheDataElseLoad: options.policy = .onlyLoadIfNotCached
        case .returnCacheDataDontLoad: options.policy = .doNotLoad
        case .reloadRevalidatingCacheData: options.policy = .askIfModified
        case .useProtocolCachePolicy: break
        @unknown default: break
        }
        if isKeptOut { options.policy.insert(.doNotWrite) }
        let seconds = request.timeoutInterval == Self.defaultTimeout ? requestTimeout : request.timeoutInterval
        let limit = Self.duration(seconds)
        options.timeouts = Timeouts(
            connect: limit, read: limit, write: limit, queue: options.timeouts?.queue ?? max(timeouts.queue, limit),
            total: resourceTimeout >= Self.noResourceLimit ? timeouts.total : Self.duration(resourceTimeout))
    }

    /// 0 means the default, as an infinite time would never end.
    private static func duration(_ seconds: TimeInterval) -> Duration {
        seconds > 0 && seconds < 1e9 ? .seconds(seconds) : seconds > 0 ? .seconds(1e9) : .seconds(defaultTimeout)
    }

    /// What is stored for the challenge of a response, of the basic scheme (RFC 7617).
    func credential(for response: HTTPURLResponse) -> URLCredential? {
        guard let credentials, let url = response.url, let host = url.host,
            let realm = response.basicRealm
        else { return nil }
        let space = URLProtectionSpace(
            host: host, port: url.port ?? (url.scheme?.lowercased() == "https" ? 443 : 80), protocol: url.scheme,
            realm: realm, authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
        #if canImport(FoundationNetworking)
            // Linux' Foundation compares spaces by their identity: look for one that says the same.
            return credentials.allCredentials.first { $0.key.isSame(as: space) }.flatMap { found, stored in
                credentials.defaultCredential(for: found) ?? stored.min { $0.key < $1.key }?.value
            }
        #else
            return credentials.defaultCredential(for: space)
                ?? credentials.credentials(for: space)?.min { $0.key < $1.key }?.value
        #endif
    }
}

extension URLProtectionSpace {
    /// Whether two spaces ask for the same credential. A space without a scheme is one of any.
    fileprivate func isSame(as other: URLProtectionSpace) -> Bool {
        let methods = [NSURLAuthenticationMethodHTTPBasic, NSURLAuthenticationMethodDefault]
        return host.lowercased() == other.host.lowercased() && port == other.port && realm == other.realm && !isProxy()
            && methods.contains(authenticationMethod) && (self.protocol ?? other.protocol) == other.protocol
    }
}

extension HTTPField.Name {
    fileprivate static let pragma = HTTPField.Name("Pragma")!
}

extension URLCredential {
    /// The value of `Authorization` (RFC 7617 section 2).
    var basicAuthorization: String? {
        guard let user, !user.contains(":"), let password else { return nil }
        return "Basic " + Data("\(user):\(password)".utf8).base64EncodedString()
    }
}
