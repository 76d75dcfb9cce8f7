import HTTPTypes

/// Asking for more than a client's range, in whole slices: RFC 9110 section 14.2 binds the answer, not the request of a
/// cache.
extension CacheRules {
    /// The `Range` to send in place of the request's own, its ends moved to multiples of `sliceBytes`; nil if it stays:
    /// no range, several, another unit, or the last bytes of a representation of unknown length.
    ///
    /// - Parameters:
    ///   - request: the client's request.
    ///   - sliceBytes: the length of a slice in bytes, above 0.
    /// - Returns: the value of the field.
    public func widenedRange(of request: HTTPRequest, sliceBytes: Int64) -> String? {
        guard sliceBytes > 0, request.method == .get, options.storesPartialResponses,
            let value = request.headerFields.single(.range), case .bytes(let field) = RangeField.parse(value),
            field.specifications.count == 1, case .from(let first, let last) = field.specifications[0]
        else { return nil }
        let start = first / sliceBytes * sliceBytes
        guard let last else { return "bytes=\(start)-" }
        let (end, isTooLarge) = (last / sliceBytes + 1).multipliedReportingOverflow(by: sliceBytes)
        return isTooLarge ? nil : "bytes=\(start)-\(end - 1)"
    }

    /// The answer to a request from a part that contains more than the request asked for.
    ///
    /// - Parameters:
    ///   - response: the head of the 206.
    ///   - request: the client's request, with its own range.
    ///   - now: the current time.
    /// - Returns: 206 with the range in the content that arrives, counted from its first byte, or 416; nil if the part
    ///   does not contain the requested bytes: then it is passed on as received.
    public func serve(slices response: HTTPResponse, to request: HTTPRequest, now: Instant) -> ServedResponse? {
        guard response.status == .partialContent, let value = request.headerFields.single(.range),
            case .bytes(let field) = RangeField.parse(value),
            let content = response.headerFields.single(.contentRange).flatMap({ ContentRange($0) }),
            let received = content.range
        else { return nil }
        var served = ServedResponse(
            index: 0, head: response, content: .none, ageMilliseconds: 0, lifetimeMilliseconds: 0, stale: nil,
            background: nil)
        // Where the complete length is not known, a range without an end goes as far as what came.
        let wanted = field.resolved(length: content.completeLength ?? received.upperBound).first
        if wanted == nil, let total = content.completeLength {
            Self.makeUnsatisfiable(&served, total)
            return served
        }
        guard let wanted, received.contains(wanted.lowerBound) else { return nil }
        let range = wanted.clamped(to: received)
        served.content = .range((range.lowerBound - received.lowerBound)..<(range.upperBound - received.lowerBound))
        served.head.headerFields.set(
            .contentRange, ContentRange(range: range, completeLength: content.completeLength).fieldValue)
        served.head.headerFields.set(.contentLength, String(range.count))
        return served
    }

    /// The first range that a request asks for of a representation with this length, in bytes; nil if there is none.
    func wantedRange(of request: HTTPRequest, length: Int64) -> Range<Int64>? {
        guard let value = request.headerFields.single(.range), case .bytes(let field) = RangeField.parse(value) else {
            return nil
        }
        return field.resolved(length: length).first
    }
}

extension ForwardedRequest {
    /// Whether its range was widened to slices.
    package var isSliced: Bool {
        purpose == .forward && sent.headerFields[.range] != request.headerFields[.range]
    }
}
