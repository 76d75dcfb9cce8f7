import HTTPTypes

/// Invalidating stored responses: RFC 9111 section 4.4, RFC 9875.
extension CacheRules {
    /// The keys and groups that a response to an unsafe request invalidates; nil for a safe method and for an error.
    ///
    /// These are always the target URI, the URIs in `Location` and `Content-Location` if they have the target's origin,
    /// and the groups in `Cache-Group-Invalidation`. A method whose safety is unknown counts as unsafe; only 2xx and
    /// 3xx responses are not errors.
    ///
    /// - Parameters:
    ///   - response: the final response.
    ///   - request: the request that it answers.
    /// - Returns: keys and groups to invalidate before any caller sees the response (RFC 9111 section 4.4).
    public func invalidation(by response: HTTPResponse, to request: HTTPRequest) -> Invalidation? {
        guard !isSafe(request.method), (200...399).contains(response.status.code),
            let target = cacheKey(for: request)?.with(method: nil)
        else {
            return nil
        }
        var keys = [target]
        for name: HTTPField.Name in [.location, .contentLocation] {
            for line in response.headerFields.lines(name) {
                guard let key = cacheKey(of: line, relativeTo: target), key.origin == target.origin, !keys.contains(key)
                else { continue }
                keys.append(key)
            }
        }
        for key in keys { keys += options.extraMethods.sorted().map { key.with(method: $0) } }
        let groups = response.headerFields.combined(.cacheGroupInvalidation).flatMap { StringList.parse($0) } ?? []
        return Invalidation(keys: keys, groups: groups, origin: target.origin)
    }
}
