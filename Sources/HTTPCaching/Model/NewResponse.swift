import HTTPTypes

/// A response that may be stored, while its body is still arriving.
public struct NewResponse: Sendable, Hashable {
    /// What the body is.
    enum Expected: Hashable, Sendable {
        /// The whole representation, with its length if the head gives it.
        case whole(length: Int64?)
        /// A part of it; together with the stored bytes if it is combined.
        case part(ContentRange, existing: ByteRanges)
    }

    /// Status and fields to be stored.
    public var head: HTTPResponse
    /// The method of requests that it can answer.
    public var method: HTTPRequest.Method
    /// The secondary key.
    public var selecting: SelectingFields
    /// When the request was sent.
    public var requestTime: Instant
    /// When the response was received.
    public var responseTime: Instant
    /// The parsed fields.
    public var policy: StoredPolicy
    /// The positions of stored responses with the same secondary key: they are replaced.
    public var replaces: [Int]
    /// The position of the stored part whose bytes stay and are added to; nil if the new bytes are stored by
    /// themselves. Also in ``replaces``.
    public var combines: Int?
    /// The groups it belongs to (RFC 9875), for an index.
    public var groups: [String]
    var expected: Expected
    var keepsIncomplete: Bool

    /// The position in the representation of the first byte that is received.
    public var firstPosition: Int64 {
        if case .part(let content, _) = expected { content.range?.lowerBound ?? 0 } else { 0 }
    }

    /// The positions that a part announced; nil for a whole representation.
    public var announcedRange: Range<Int64>? {
        if case .part(let content, _) = expected { content.range } else { nil }
    }

    /// The stored response, once the body has ended.
    ///
    /// - Parameters:
    ///   - receivedBytes: the number of bytes of content received.
    ///   - isComplete: true if the message was complete (RFC 9112 section 8): false for a connection that closed early.
    /// - Returns: nil if the received bytes are not to be kept: a cut-off response without a strong validator, or one
    ///   that is not a 200 (RFC 9111 section 3.3), or a complete one with more bytes than `Content-Range` says, or with
    ///   more than one byte less.
    public func finished(receivedBytes: Int64, isComplete: Bool) -> StoredResponse? {
        var result = StoredResponse(
            head: head, method: method, selecting: selecting, requestTime: requestTime, responseTime: responseTime,
            body: .complete(length: receivedBytes), policy: policy)
        switch expected {
        case .whole(let length):
            if !isComplete {
                guard keepsIncomplete, receivedBytes > 0 else { return nil }
                if let length, receivedBytes >= length { return nil }
                result.body = .partial(ByteRanges([0..<receivedBytes]), total: length)
            }
        case .part(let content, let existing):
            guard let range = content.range, receivedBytes > 0, receivedBytes <= Int64(range.count) else { return nil }
            var total = content.completeLength
            if isComplete && receivedBytes < Int64(range.count) {
                // The message ended properly one byte before Content-Range says it should: an origin that took the
                // position after the last byte for that of the last one. The framing is what other recipients go by as
                // well, so the bytes count from the first position; a part that claimed to reach the end still does.
                // Where more is missing it is not known what the bytes are.
                guard receivedBytes == Int64(range.count) - 1 else { return nil }
                if total == range.upperBound { total = range.lowerBound + receivedBytes }
                result.policy.flags.insert(.neverCombined)
                guard existing.ranges.isEmpty else { return nil }
            }
            var available = existing
            available.insert(range.lowerBound..<(range.lowerBound + receivedBytes))
            if let total, available.contains(0..<total) {
                result.body = .complete(length: total)
                result.head.headerFields.set(.contentLength, String(total))
            } else {
                result.body = .partial(available, total: total)
            }
        }
        return result
    }
}
