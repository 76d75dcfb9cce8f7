import HTTPTypes

/// Header fields that are stored and updated: RFC 9111 sections 3.1 and 3.2, RFC 9110 sections 6.6.1 and 7.6.1.
extension CacheRules {
    /// The fields of a response that are stored, in their order.
    ///
    /// Not stored: `Connection` and the fields it names, the other fields that belong to one connection, the
    /// fields of the proxy that was used (`Proxy-Authenticate`, `Proxy-Authentication-Info`, `Proxy-
    /// Authorization`), and those named by `no-cache="…"`, in a shared cache also by `private="…"`. A missing
    /// `Date` is added, as RFC 9110 section 6.6.1 demands.
    ///
    /// - Parameters:
    ///   - response: as received.
    ///   - responseTime: when its head was received; the `Date` of a response that has none.
    /// - Returns: a subset of the fields, each with all its values.
    public func storedFields(of response: HTTPResponse, responseTime: Instant) -> HTTPFields {
        storedFields(of: response, directives(of: response), responseTime: responseTime)
    }

    /// As above, with the directives of the response.
    func storedFields(
        of response: HTTPResponse, _ directives: ResponseDirectives, responseTime: Instant
    ) -> HTTPFields {
        let excluded = excludedNames(of: response, directives)
        var fields = response.headerFields
        fields.removeEach { field in
            let name = field.name.canonicalName
            return Self.connectionFields.contains(name) || !excluded.isEmpty && excluded.contains(name)
        }
        if !fields.contains(.date) { fields.append(HTTPField(name: .date, value: HTTPDate.format(responseTime))) }
        Self.repairLength(&fields)
        return fields
    }

    /// A length that is said several times is said once, as RFC 9110 section 8.6 demands of a sender that forwards it;
    /// one that is not a length, or not the same each time, is removed.
    private static func repairLength(_ fields: inout HTTPFields) {
        if let value = fields.single(.contentLength), !value.contains(FieldBytes.comma) { return }
        guard let value = fields.combined(.contentLength) else { return }
        let members = Set(FieldBytes.members(value).map { Array($0) })
        if members.count == 1, let only = members.first, let length = FieldBytes.number(only, ceiling: 1 << 62) {
            fields.set(.contentLength, String(length))
        } else {
            fields.remove(.contentLength)
        }
    }

    private static let framingFields: FieldNameSet = ["content-length", "content-range"]

    /// Section 3.2: the fields of a stored response after an update from another response: each field of the new one
    /// replaces all values of the old one, except those that are not stored, `Content-Length` and `Content-Range`,
    /// which describe the message that they come with. `Age` and `Date` always belong to the newer response.
    func updatedFields(of stored: StoredResponse, from response: HTTPResponse, responseTime: Instant) -> HTTPFields {
        var excluded = excludedNames(of: response, directives(of: response))
        if !takesCookies(of: response, responseTime: responseTime) { excluded.insert("set-cookie") }
        excluded.formUnion(options.fieldsKeptOnUpdate.map(\.canonicalName))
        var incoming: [HTTPField] = []
        var names: Set<String> = ["age", "date"]
        for field in response.headerFields {
            let name = field.name.canonicalName
            if Self.connectionFields.contains(name) || excluded.contains(name) || Self.framingFields.contains(name) {
                continue
            }
            incoming.append(field)
            names.insert(name)
        }
        var fields = HTTPFields()
        fields.reserveCapacity(stored.head.headerFields.count + incoming.count + 1)
        for field in stored.head.headerFields where !names.contains(field.name.canonicalName) { fields.append(field) }
        guard fields.count + incoming.count <= 2 * Self.maximumFields else { return stored.head.headerFields }
        for field in incoming { fields.append(field) }
        if !fields.contains(.date) { fields.append(HTTPField(name: .date, value: HTTPDate.format(responseTime))) }
        return fields
    }

    /// Whether the cookies of an update (a 304, a 206 or an answer to HEAD) become part of the stored response.
    ///
    /// Such a response answers one client. What it sets for that client must not reach others, so in a shared cache it
    /// has to say itself that it may be shared, just as a 200 with the same fields has to.
    func takesCookies(of response: HTTPResponse, responseTime: Instant) -> Bool {
        guard isShared, response.headerFields.contains(.setCookie) else { return true }
        return takesCookies(of: response, policy(for: response, requestTime: responseTime, responseTime: responseTime))
    }

    /// Whether a response may be stored with its cookies, if it has any.
    ///
    /// If the response states that it is fresh, the cookies are for all clients; a lifetime of 0 and `no-cache` say the
    /// contrary. A response that is validated before each use would give them to every client whose request validates
    /// it.
    /// - Parameter policy: what its own fields say.
    func takesCookies(of response: HTTPResponse, _ policy: StoredPolicy) -> Bool {
        guard isShared, response.headerFields.contains(.setCookie) else { return true }
        switch options.setCookie {
        case .ignore: return true
        case .neverStore: return false
        case .requireExplicitFreshness:
            if policy.flags.contains(.noCache) { return false }
            let isExplicit = [.sMaxage, .maxAge, .expires].contains(policy.lifetimeSource)
            return directives(of: response).isPublic || (isExplicit && policy.lifetimeMilliseconds > 0)
        }
    }

    /// Gives the client whose request brought an update the cookies that were meant for it alone.
    func addCookies(of response: HTTPResponse, to head: inout HTTPResponse, responseTime: Instant) {
        guard !takesCookies(of: response, responseTime: responseTime) else { return }
        head.headerFields.remove(.setCookie)
        for field in response.headerFields where field.name == .setCookie { head.headerFields.append(field) }
    }

    /// The names, in lower case, of fields for one connection (RFC 9110 section 7.6.1) or one proxy (RFC 9111 section
    /// 3.1). Credentials for a proxy end at the proxy: an origin that got them could use them (RFC 9110 sections 11.7.1
    /// to 11.7.3).
    package static let connectionFields: FieldNameSet = [
        "close", "connection", "keep-alive", "proxy-authenticate", "proxy-authentication-info", "proxy-authorization",
        "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
    ]

    /// The names that the response itself excludes. What controls caching cannot be excluded: the stored response
    /// would lose its restrictions.
    private func excludedNames(of response: HTTPResponse, _ directives: ResponseDirectives) -> Set<String> {
        var names: Set<String> = []
        for member in response.headerFields.combined(.connection).map({ FieldBytes.members($0) }) ?? [] {
            let name = String(decoding: FieldBytes.lowercased(member), as: UTF8.self)
            // Nearly all say `keep-alive` or `close`, which are excluded anyway.
            if !Self.connectionFields.contains(name) { names.insert(name) }
        }
        if case .fields(let listed) = directives.noCache { names.formUnion(listed) }
        if isShared, case .fields(let listed) = directives.isPrivate { names.formUnion(listed) }
        guard !names.isEmpty else { return names }
        names.subtract(["cache-control", "vary", "date"])
        names.subtract(options.targetedFields.map { $0.canonicalName })
        return names
    }
}
