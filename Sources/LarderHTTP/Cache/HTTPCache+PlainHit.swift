import HTTPCaching
import Larder

/// A fresh response to the commonest request, ready to be sent over HTTP/1.1.
package struct PlainHit: Sendable {
    private let metadata: [UInt8]
    private let range: Range<Int>
    /// The status code.
    package let status: Int
    /// The age for the `Age` field, in seconds.
    package let ageSeconds: Int64
    /// Seconds of freshness left.
    package let freshSeconds: Int64
    /// Whether ``withFields(_:)`` has a `Content-Length`.
    package let hasContentLength: Bool
    /// The content.
    package let body: Body

    init(
        metadata: [UInt8], fields: Range<Int>, status: Int, ageSeconds: Int64, freshSeconds: Int64,
        hasContentLength: Bool, body: Body
    ) {
        self.metadata = metadata
        range = fields
        self.status = status
        self.ageSeconds = ageSeconds
        self.freshSeconds = freshSeconds
        self.hasContentLength = hasContentLength
        self.body = body
    }

    /// The stored fields as they go over the connection: `name: value` and CR LF for each, without `Age`.
    package func withFields<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R {
        try metadata.withUnsafeBytes { try body(UnsafeRawBufferPointer(rebasing: $0[range])) }
    }
}

extension HTTPCache {
    /// Whether ``plainHit(_:)`` can ever find anything: the default key is the URL, and nothing else has to be asked.
    package var hasPlainHits: Bool {
        configuration.keyPolicy.isDefault && configuration.authorization == nil
            && configuration.defaultPolicy == .askIfModifiedWhenStale
    }

    /// A response for a GET that has no content, precondition, range, `Cache-Control` and `Pragma`; nil if there is none
    /// that can be sent as it stands: then ask ``answer(_:hasContent:)``.
    ///
    /// - Parameter key: the target URI in the form of ``CacheKey``: scheme and host in lower case, no default port.
    package func plainHit(_ key: Key) -> PlainHit? {
        guard let entry = try? store.get(key, includingExpired: true) else { return nil }
        let metadata = entry.metadata
        let now = now
        return metadata.withUnsafeBytes { raw -> PlainHit? in
            guard let layout = StoredRecord.Layout(raw), layout.isPlain,
                layout.status >= 200, ![204, 205, 304].contains(layout.status), layout.total == entry.body.length.bytes,
                let policy = StoredPolicy(
                    encoded: UnsafeRawBufferPointer(rebasing: raw[40..<StoredRecord.fixedLength])),
                let age = rules.plainHitAge(policy: policy, now: now)
            else { return nil }
            return PlainHit(
                metadata: metadata, fields: layout.fields, status: layout.status, ageSeconds: age,
                freshSeconds: (policy.lifetimeMilliseconds - policy.ageMilliseconds(at: now)) / 1_000,
                hasContentLength: layout.hasContentLength, body: entry.body)
        }
    }
}
