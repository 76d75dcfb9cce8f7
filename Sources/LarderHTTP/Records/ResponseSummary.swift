import HTTPCaching
import HTTPTypes
import Larder

/// A description, for tools, of the response in an entry of an HTTP cache.
public struct ResponseSummary: Sendable, Hashable {
    /// The URL.
    public let url: String
    /// The key of its entry, by which to pin, lease, tag, export or remove it (`Store`).
    public let key: Key
    /// The request fields that selected the response (RFC 9111 section 4.1), as `name: value`; `name` alone if the
    /// request did not have the field. Empty for a response that does not vary.
    public let variant: [String]
    /// The key under which the URL's response, or the list of its variants, is stored: see ``VariantList``.
    public let primaryKey: Key
    /// The status code.
    public let status: Int
    /// The fields as stored.
    public let fields: HTTPFields
    /// The age in seconds.
    public let ageSeconds: Int64
    /// Seconds of freshness left, negative when stale.
    public let freshSeconds: Int64
    /// True if it may be used only after asking the origin.
    public let needsValidation: Bool
    /// True if it may be used without asking the origin.
    public var isFresh: Bool { freshSeconds > 0 && !needsValidation }
    /// `ETag`, if there is one.
    public let entityTag: String?
    /// `Last-Modified`, if there is one.
    public let lastModified: String?
    /// The length of the whole representation, if it is known.
    public let totalBytes: Int64?
    /// True if all of its bytes are stored.
    public let isComplete: Bool
    /// The cache groups (RFC 9875).
    public let groups: [String]
    /// The positions of an incomplete response that are stored, in this entry and in those of its parts, in order; nil
    /// for a complete one. Parts that were displaced or lost since are listed until the response is read.
    public let storedRanges: [Range<Int64>]?
    /// Bytes of it that are stored.
    package var storedBytes: Int64? { storedRanges.map { $0.reduce(0) { $0 + Int64($1.count) } } ?? totalBytes }
    let selecting: SelectingFields

    /// Reads an entry's metadata; nil for an entry that is not a response, such as the list of a URL's variants.
    ///
    /// - Parameters:
    ///   - entry: the attributes of an entry of an HTTP cache's store.
    ///   - now: the time for age and freshness. Default: the system's.
    public init?(_ entry: Attributes, now: Timestamp = SystemClock().now()) {
        self.init(metadata: entry.metadata, key: entry.key, now: Instant(milliseconds: now.microseconds / 1_000))
    }

    init?(metadata: [UInt8], key: Key, now: Instant) {
        guard let record = StoredRecord(metadata) else { return nil }
        let response = record.response
        if case .partial(var ranges, _) = response.body {
            for part in record.parts { for range in part.ranges.ranges { ranges.insert(range) } }
            storedRanges = ranges.ranges
        } else {
            storedRanges = nil
        }
        self.key = key
        primaryKey = VariantIndex.primaryKey(of: key)
        selecting = response.selecting
        let key = key.text
        // Keys are the URL, perhaps behind a method and before what tells variants apart; no URL has a space.
        let parts = key.split(separator: " ")
        url = parts.first { $0.contains("://") }.map(String.init) ?? key
        variant = response.selecting.fields.map { field in
            field.value.map { "\(field.name): \(Key(bytes: $0).text)" } ?? field.name
        }
        let policy = response.policy
        status = response.head.status.code
        fields = response.head.headerFields
        ageSeconds = policy.ageMilliseconds(at: now) / 1_000
        let (left, overflow) = policy.lifetimeMilliseconds.subtractingReportingOverflow(
            policy.ageMilliseconds(at: now))
        freshSeconds = overflow ? 0 : left / 1_000
        needsValidation = response.isInvalidated || policy.flags.contains(.noCache)
        entityTag = response.head.headerFields[.eTag]
        lastModified = response.head.headerFields[.lastModified]
        totalBytes = response.body.total
        isComplete = response.body.isComplete
        groups = response.groups
    }

    /// The number of variants of a URL.
    ///
    /// - Parameter entry: the attributes of an entry.
    /// - Returns: nil if the entry is not the list of a URL's variants.
    public static func variantCount(of entry: Attributes) -> Int? {
        VariantIndex(entry.metadata)?.variants.count
    }
}
