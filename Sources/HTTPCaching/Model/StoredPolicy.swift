/// The terms on which a stored response may be used, parsed from its fields once when it is stored.
///
/// A decision on a hit needs only this value and the time. It holds no references, and its encoding has
/// ``encodedByteCount`` bytes.
public struct StoredPolicy: Sendable, Hashable {
    /// Properties that are set or not.
    public struct Flags: OptionSet, Sendable, Hashable {
        /// The bits.
        public let rawValue: UInt16
        /// Makes flags from bits.
        ///
        /// - Parameter rawValue: the sum of the raw values of flags.
        public init(rawValue: UInt16) { self.rawValue = rawValue }
        /// `no-cache` without field names: must be validated before every use (RFC 9111 section 5.2.2.4).
        public static let noCache = Flags(rawValue: 1 << 0)
        /// A directive prohibits serving it stale (RFC 9111 section 4.2.4): `must-revalidate`, in a shared cache
        /// `proxy-revalidate` and `s-maxage`, or `no-cache`.
        public static let staleProhibited = Flags(rawValue: 1 << 1)
        /// `immutable` (RFC 8246).
        public static let immutable = Flags(rawValue: 1 << 2)
        /// There is a valid entity tag.
        public static let hasEntityTag = Flags(rawValue: 1 << 3)
        /// The entity tag is weak.
        public static let weakEntityTag = Flags(rawValue: 1 << 4)
        /// There is a valid `Last-Modified`.
        public static let hasLastModified = Flags(rawValue: 1 << 5)
        /// `Last-Modified` is strong as used here: at least a minute older than `Date` (RFC 9110 section 8.8.2.2).
        public static let strongLastModified = Flags(rawValue: 1 << 6)
        /// There is a valid `Date`.
        public static let hasDate = Flags(rawValue: 1 << 7)
        /// `no-transform`.
        public static let noTransform = Flags(rawValue: 1 << 8)
        /// The framing contradicted `Content-Range`: served as received, never combined.
        public static let neverCombined = Flags(rawValue: 1 << 9)
    }

    /// The source of the freshness lifetime (RFC 9111 section 4.2.1).
    public enum LifetimeSource: UInt8, Sendable, Hashable {
        /// No source: stale from the start.
        case none = 0
        /// `s-maxage`.
        case sMaxage = 1
        /// `max-age`.
        case maxAge = 2
        /// `Expires` minus `Date`.
        case expires = 3
        /// Heuristic (section 4.2.2).
        case heuristic = 4
        /// Freshness information was given but is not valid: stale from the start.
        case invalid = 5
        /// Set by the caller.
        case override = 6
    }

    /// Properties that are set or not.
    public var flags: Flags
    /// The source of the lifetime.
    public var lifetimeSource: LifetimeSource
    /// The freshness lifetime in milliseconds.
    public var lifetimeMilliseconds: Int64
    /// The age at the time of the response in milliseconds (section 4.2.3: `corrected_initial_age`).
    public var initialAgeMilliseconds: Int64
    /// The time of the response.
    public var responseTime: Instant
    /// `Date`, or the time of the response if there is none.
    public var date: Instant
    /// `Last-Modified`, or 0.
    public var lastModified: Instant
    /// `stale-while-revalidate` in seconds; -1 if there is none.
    public var staleWhileRevalidateSeconds: Int64
    /// `stale-if-error` in seconds; -1 if there is none.
    public var staleIfErrorSeconds: Int64
    /// ``CachingOptions/fingerprint`` of the options it was made under.
    public var fingerprint: UInt32

    /// True if there is an entity tag or a modification date for validation.
    public var hasValidator: Bool { !flags.isDisjoint(with: [.hasEntityTag, .hasLastModified]) }

    /// True if there is a strong validator (RFC 9110 section 8.8.1).
    public var hasStrongValidator: Bool {
        (flags.contains(.hasEntityTag) && !flags.contains(.weakEntityTag))
            || (!flags.contains(.hasEntityTag) && flags.contains(.strongLastModified))
    }

    /// The current age in milliseconds (section 4.2.3); never less than the initial age, whatever the clock does.
    ///
    /// - Parameter now: the current time.
    /// - Returns: milliseconds; saturates.
    public func ageMilliseconds(at now: Instant) -> Int64 {
        initialAgeMilliseconds.addingSaturating(max(0, now.milliseconds(since: responseTime)))
    }

    /// True if it is fresh (section 4.2). A clock that was set back by more than `clockSkewTolerance` milliseconds
    /// makes it stale: its age is unknown then.
    ///
    /// - Parameters:
    ///   - now: the current time.
    ///   - clockSkewTolerance: in milliseconds. Default: a minute.
    /// - Returns: true if the current age is below the freshness lifetime.
    public func isFresh(at now: Instant, clockSkewTolerance: Int64 = 60_000) -> Bool {
        lifetimeMilliseconds > ageMilliseconds(at: now) && responseTime.milliseconds(since: now) <= clockSkewTolerance
    }

    /// How long it has been stale, in milliseconds; 0 when fresh.
    ///
    /// - Parameter now: the current time.
    /// - Returns: the current age less the freshness lifetime.
    public func stalenessMilliseconds(at now: Instant) -> Int64 {
        max(0, ageMilliseconds(at: now).subtractingSaturating(lifetimeMilliseconds))
    }

    /// When it stops being fresh, for an index of expiry times.
    public var freshUntil: Instant {
        responseTime.advanced(byMilliseconds: lifetimeMilliseconds.subtractingSaturating(initialAgeMilliseconds))
    }

    /// Makes it fresh for a time from now on. Its age keeps counting, and directives that prohibit serving it stale
    /// still apply.
    ///
    /// - Parameters:
    ///   - milliseconds: more than 0.
    ///   - now: the current time.
    package mutating func setFreshness(milliseconds: Int64, from now: Instant) {
        lifetimeMilliseconds = ageMilliseconds(at: now).addingSaturating(milliseconds)
        flags.subtract(.noCache)
    }

    /// Makes it stale from now on, whatever its fields say and whatever rules read them: the origin has something else.
    /// Directives that prohibit serving it stale still apply; nothing is served while it is validated.
    ///
    /// - Parameter now: the current time.
    package mutating func supersede(at now: Instant) {
        initialAgeMilliseconds = ageMilliseconds(at: now)
        responseTime = now
        lifetimeSource = .override
        lifetimeMilliseconds = initialAgeMilliseconds
        staleWhileRevalidateSeconds = -1
    }

    /// True after ``supersede(at:)``.
    package var isSuperseded: Bool {
        lifetimeSource == .override && lifetimeMilliseconds <= initialAgeMilliseconds
    }

    /// Replaces the response's own lifetime, for a caller's policy. It counts from the time of the response, whose age
    /// does not change: other caches rely on it.
    ///
    /// - Parameter lifetimeSeconds: from the time of the response on; 0 or less makes it stale immediately.
    public mutating func override(lifetimeSeconds: Int64) {
        lifetimeSource = .override
        lifetimeMilliseconds = max(0, lifetimeSeconds).secondsAsMilliseconds.addingSaturating(initialAgeMilliseconds)
        flags.subtract([.noCache, .staleProhibited])
    }
}
