import HTTPTypes

/// One member of the `Cache-Status` field (RFC 9211 section 2): how this cache handled a request.
public struct CacheStatus: Sendable, Hashable, CustomStringConvertible {
    /// The reason that a request was forwarded to the next hop (section 2.2).
    public enum ForwardReason: String, Sendable, Hashable {
        /// The cache was configured not to handle it.
        case bypass
        /// The method's semantics require it.
        case method
        /// Nothing is stored for the URI.
        case uriMiss = "uri-miss"
        /// Something is stored for the URI, but not for these request fields.
        case varyMiss = "vary-miss"
        /// Nothing stored could be used, for another reason.
        case miss
        /// A fresh response was stored, but the request did not allow its use.
        case request
        /// The stored response was stale or had to be validated.
        case stale
        /// Only some of the bytes were stored.
        case partial
    }

    /// The two mutually exclusive outcomes (sections 2.1 and 2.2).
    public enum Outcome: Sendable, Hashable {
        /// Satisfied without going forward.
        case hit
        /// Forwarded.
        case forwarded(ForwardReason)
    }

    /// The name of the cache.
    public var cacheName: String
    /// The outcome of the request.
    public var outcome: Outcome
    /// The status code that the next hop answered with (section 2.3); left out when it equals the status that is sent.
    public var forwardStatus: Int?
    /// The freshness left in seconds, negative when stale (section 2.6).
    public var ttlSeconds: Int64?
    /// True if the response to the forwarded request was stored (section 2.4).
    public var isStored: Bool
    /// True if the request shared a forwarded request with others (section 2.5).
    public var isCollapsed: Bool
    /// The cache key (section 2.7); left out when it is not printable ASCII.
    public var key: String?
    /// Further detail, as a short text (section 2.8).
    public var detail: String?

    /// Makes a member. Each parameter sets the property of its name; omitted ones are not part of the member.
    public init(
        cacheName: String, outcome: Outcome, forwardStatus: Int? = nil, ttlSeconds: Int64? = nil,
        isStored: Bool = false,
        isCollapsed: Bool = false, key: String? = nil, detail: String? = nil
    ) {
        self.cacheName = cacheName
        self.outcome = outcome
        self.forwardStatus = forwardStatus
        self.ttlSeconds = ttlSeconds
        self.isStored = isStored
        self.isCollapsed = isCollapsed
        self.key = key
        self.detail = detail
    }

    /// The member in the form of the field.
    public var fieldValue: String {
        // Without interpolation, which takes longer than all of this.
        var text = Self.item(cacheName) ?? "\"\""
        text.reserveCapacity(64)
        switch outcome {
        case .hit: text += "; hit"
        case .forwarded(let reason):
            text += "; fwd="
            text += reason.rawValue
            if let forwardStatus {
                text += "; fwd-status="
                text += String(forwardStatus)
            }
        }
        if let ttlSeconds {
            text += "; ttl="
            text += String(min(max(ttlSeconds, -999_999_999_999_999), 999_999_999_999_999))
        }
        if case .forwarded = outcome {
            if isStored { text += "; stored" }
            if isCollapsed { text += "; collapsed" }
        }
        if let key, let string = Self.string(key) { text += "; key=\(string)" }
        if let detail, let item = Self.item(detail) { text += "; detail=\(item)" }
        return text
    }

    /// As `fieldValue`.
    public var description: String { fieldValue }

    /// Appends the member after those of caches nearer to the origin (section 2), as a separate line.
    ///
    /// - Parameter fields: the fields of the response.
    public func append(to fields: inout HTTPFields) { fields.append(HTTPField(name: .cacheStatus, value: fieldValue)) }

    /// A token where the text is one, otherwise a string; nil when it is neither.
    private static func item(_ text: String) -> String? {
        var text = text
        let isToken = text.withUTF8 { bytes in
            guard let first = bytes.first, first | 0x20 >= 0x61 && first | 0x20 <= 0x7A || first == UInt8(ascii: "*")
            else { return false }
            return bytes.allSatisfy { FieldBytes.isToken($0) || $0 == 0x3A || $0 == 0x2F }
        }
        return isToken ? text : string(text)
    }

    private static func string(_ text: String) -> String? {
        guard text.utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7F }) else { return nil }
        var result = "\""
        for scalar in text.unicodeScalars {
            if scalar == "\"" || scalar == "\\" { result.unicodeScalars.append("\\") }
            result.unicodeScalars.append(scalar)
        }
        return result + "\""
    }
}
