import AsyncHTTPClient
import NIOHTTP1

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The redirects of one call, by the rules that AsyncHTTPClient has: it cannot follow them itself, because each answer
/// on the way is one that a cache can keep.
struct RedirectTrail {
    private let rules: ClientSettings.FollowConfiguration
    private var visited: [String]

    init(_ rules: ClientSettings.FollowConfiguration, from url: String) {
        self.rules = rules
        visited = [url]
    }

    /// The request that an answer redirects to.
    ///
    /// - Parameters:
    ///   - request: the request that was answered.
    ///   - status: that of the answer.
    ///   - location: its `Location`.
    /// - Returns: nil for an answer that is not a redirect, or one to a place that may not be asked.
    /// - Throws: `HTTPClientError`, beyond the number of redirects and for a place that was visited.
    mutating func next(
        after request: HTTPClientRequest, _ status: HTTPResponseStatus, _ location: String?
    ) throws -> HTTPClientRequest? {
        guard Self.redirects.contains(status.code), let location, let old = URL(string: request.url),
            let new = URL(string: location, relativeTo: old)?.absoluteURL, Self.mayLead(from: old, to: new)
        else { return nil }
        let url = new.absoluteString
        guard visited.count <= rules.max else { throw HTTPClientError.redirectLimitReached }
        guard rules.allowCycles || !visited.contains(url) else { throw HTTPClientError.redirectCycleDetected }
        visited.append(url)
        return changed(request, from: old, to: new, status)
    }

    /// As in the client's own list.
    private static let redirects: Set<UInt> = [301, 302, 303, 304, 305, 307, 308]
    private static let network: Set<String> = ["http", "https"]
    private static let sockets: Set<String> = ["unix", "http+unix", "https+unix"]

    /// An answer from the network must not lead to a socket of this machine.
    private static func mayLead(from old: URL, to new: URL) -> Bool {
        guard let before = old.scheme?.lowercased(), let after = new.scheme?.lowercased() else { return false }
        return network.contains(after) || sockets.contains(before) && sockets.contains(after)
    }

    private func changed(
        _ request: HTTPClientRequest, from old: URL, to new: URL, _ status: HTTPResponseStatus
    ) -> HTTPClientRequest {
        var result = request
        result.url = new.absoluteString
        let becomesGet: Bool
        switch status.code {
        case 303: becomesGet = request.method != .HEAD
        case 301: becomesGet = request.method == .POST && !rules.retainHTTPMethodAndBodyOn301
        case 302: becomesGet = request.method == .POST && !rules.retainHTTPMethodAndBodyOn302
        default: becomesGet = false
        }
        if becomesGet {
            result.method = .GET
            result.body = nil
            for name in ["Content-Length", "Content-Type"] { result.headers.remove(name: name) }
        }
        if old.host != new.host || old.scheme != new.scheme || old.port != new.port {
            // What is secret is for the first origin only. The name of the first host would be wrong for another.
            for name in ["Origin", "Cookie", "Authorization", "Proxy-Authorization", "Host"] {
                result.headers.remove(name: name)
            }
        }
        return result
    }
}
