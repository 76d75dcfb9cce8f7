import HTTPCaching
import HTTPTypes
import Larder

/// A response that did not arrive over a connection, in the form of an entry of an HTTP cache's store: for packages.
package struct PackagedResponse: Sendable {
    /// The entry's metadata.
    package let metadata: [UInt8]

    /// Makes a record of a whole response to GET.
    ///
    /// - Parameters:
    ///   - head: status and fields. Fields of one connection are left out, and so is `Set-Cookie`: it was meant for
    ///     another client.
    ///   - date: when the response was current: becomes its `Date` if it has none.
    ///   - length: the length of the body, in bytes.
    ///   - rules: the rules of the cache that reads it, or any others.
    package init(head: HTTPResponse, date: Instant, length: Int64, rules: CacheRules) {
        var head = head
        for name in [HTTPField.Name.setCookie, .contentRange, .cacheStatus] { head.headerFields[name] = nil }
        // A date to come would win over whatever comes.
        if let own = head.headerFields[values: .date].first,
            HTTPDate.parse(Array(own.utf8), now: date).map({ $0 > date }) ?? true
        {
            head.headerFields[.date] = nil
        }
        head.headerFields = rules.storedFields(of: head, responseTime: date)
        head.headerFields[.contentLength] = String(length)
        let policy = rules.policy(for: head, requestTime: date, responseTime: date)
        metadata =
            StoredRecord(
                StoredResponse(
                    head: head, requestTime: date, responseTime: date, body: .complete(length: length), policy: policy)
            ).encoded
    }

    /// What the origin has said of a member since it was installed, and since a moment; nil if it has said nothing.
    package static func revision(_ metadata: [UInt8], since moment: Instant?) -> [UInt8]? {
        guard StoredRecord.isRevised(metadata), let response = StoredRecord(metadata)?.response,
            moment.map({ response.responseTime > $0 }) ?? true
        else { return nil }
        return metadata
    }

    /// The stored response that metadata describe, if it is complete and answers a GET whatever its fields; nil for any
    /// other.
    package static func read(_ metadata: [UInt8]) -> StoredResponse? {
        guard let response = StoredRecord(metadata)?.response, response.body.isComplete,
            response.method == .get
        else { return nil }
        return response
    }

    /// True if an entry has a response of any kind, or a list of variants.
    package static func isResponse(_ metadata: [UInt8]) -> Bool {
        return StoredRecord(metadata) != nil || VariantIndex(metadata) != nil
    }

    /// The URL of a response that is one of several of its URL; nil for any other response.
    package static func url(ofVariant key: Key) -> String? {
        let primary = VariantIndex.primaryKey(of: key)
        return primary == key ? nil : primary.text
    }

    /// The key of a URL, and the URL in the form of keys; nil for one for which nothing is stored.
    package static func key(of url: String, rules: CacheRules) -> Key? {
        guard let request = try? HTTPCache.request(for: url) else { return nil }
        return rules.cacheKey(for: request).map { Key($0.description) }
    }
}
