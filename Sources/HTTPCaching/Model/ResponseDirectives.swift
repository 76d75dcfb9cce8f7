/// The cache directives of a response (RFC 9111 section 5.2.2, RFC 5861, RFC 8246), from `Cache-Control` or a
/// targeted field.
///
/// Unknown directives are ignored (section 5.2.3). If a directive is given twice, the first one counts (section 4.2.1).
public struct ResponseDirectives: Sendable, Hashable {
    /// A directive whose argument is a number of seconds.
    public enum Seconds: Sendable, Hashable {
        /// Not given.
        case absent
        /// Given with a valid argument, 0...2^42.
        case value(Int64)
        /// Given without a valid argument: the response counts as stale (section 4.2.1). It permits nothing.
        case invalid

        /// True if the directive was given at all.
        public var isPresent: Bool { self != .absent }
        /// The valid argument.
        public var seconds: Int64? { if case .value(let seconds) = self { seconds } else { nil } }
    }

    /// `no-cache` and `private`: unqualified, or with the names of the fields they apply to.
    public enum Qualified: Sendable, Hashable {
        /// Not given.
        case absent
        /// For the whole response: no argument, or one that names no field.
        case unqualified
        /// For these fields only; names in lower case.
        case fields([String])
    }

    /// `max-age` (5.2.2.1).
    public var maxAge = Seconds.absent
    /// `s-maxage` (5.2.2.10).
    public var sMaxage = Seconds.absent
    /// `stale-while-revalidate` (RFC 5861 section 3).
    public var staleWhileRevalidate = Seconds.absent
    /// `stale-if-error` (RFC 5861 section 4).
    public var staleIfError = Seconds.absent
    /// `no-cache` (5.2.2.4).
    public var noCache = Qualified.absent
    /// `private` (5.2.2.7).
    public var isPrivate = Qualified.absent
    /// True if `private` lets a private cache store a response that it could not store otherwise: only if the directive
    /// is written as defined.
    public var permitsPrivateStoring = false
    /// True if `must-revalidate` lets a shared cache store an answer to `Authorization` (3.5), under the same
    /// condition.
    public var permitsAuthenticatedStoring = false
    /// `must-revalidate` (5.2.2.2).
    public var mustRevalidate = false
    /// `must-understand` (5.2.2.3).
    public var mustUnderstand = false
    /// `no-store` (5.2.2.5).
    public var noStore = false
    /// `no-transform` (5.2.2.6): not for the cache, but for intermediaries that would recode the body.
    public var noTransform = false
    /// `proxy-revalidate` (5.2.2.8).
    public var proxyRevalidate = false
    /// `public` (5.2.2.9).
    public var isPublic = false
    /// `immutable` (RFC 8246 section 2).
    public var immutable = false

    /// No directives.
    public init() {}

    /// Parses the combined lines of `Cache-Control`. Never fails.
    ///
    /// - Parameter bytes: the values of all lines, joined by commas. Parts that cannot be parsed are ignored.
    public init(_ bytes: [UInt8]) {
        for directive in DirectiveList.parse(bytes) {
            apply(name: String(decoding: directive.name, as: UTF8.self), directive.argument)
        }
    }

    mutating func apply(name: String, _ argument: DirectiveList.Argument) {
        switch name {
        case "max-age": Self.set(&maxAge, argument)
        case "s-maxage": Self.set(&sMaxage, argument)
        case "stale-while-revalidate": Self.set(&staleWhileRevalidate, argument)
        case "stale-if-error": Self.set(&staleIfError, argument)
        case "no-cache": Self.merge(&noCache, argument)
        case "private":
            Self.merge(&isPrivate, argument)
            if argument != .malformed { permitsPrivateStoring = true }
        // A stray argument does not weaken a directive that has none: the most restrictive reading.
        case "no-store": noStore = true
        case "no-transform": noTransform = true
        case "must-revalidate":
            mustRevalidate = true
            if argument == .none { permitsAuthenticatedStoring = true }
        case "proxy-revalidate": proxyRevalidate = true
        // These permit something: they count only when written as defined.
        case "must-understand": if argument == .none { mustUnderstand = true }
        case "public": if argument == .none { isPublic = true }
        case "immutable": if argument == .none { immutable = true }
        default: break
        }
    }

    private static func set(_ target: inout Seconds, _ argument: DirectiveList.Argument) {
        guard target == .absent else { return }
        if case .value(let bytes) = argument, let seconds = DeltaSeconds.parse(bytes) {
            target = .value(seconds)
        } else {
            target = .invalid
        }
    }

    /// Several qualified forms add up; an unqualified one wins over all (section 4.2.1: the most restrictive is
    /// honoured).
    private static func merge(_ target: inout Qualified, _ argument: DirectiveList.Argument) {
        var names: [String] = []
        if case .value(let bytes) = argument {
            let members = FieldBytes.members(bytes)
            // A member with a space in it may be two names.
            if members.allSatisfy({ FieldBytes.isToken($0) }) {
                names = members.map { String(decoding: FieldBytes.lowercased($0), as: UTF8.self) }
            }
        }
        switch target {
        case .unqualified: break
        case _ where names.isEmpty: target = .unqualified
        case .fields(let known): target = .fields(known + names)
        case .absent: target = .fields(names)
        }
    }
}
