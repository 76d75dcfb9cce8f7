import HTTPTypes

/// The head of a response made from a stored one: RFC 9111 sections 4, 4.3.2 and 5.1, RFC 9110 sections 15.3.7,
/// 15.4.5 and 15.5.17.
extension CacheRules {
    /// Makes the answer to a request from a stored response that may be used; nil when the bytes asked for are not
    /// there or the range unit is unknown.
    func serve(
        _ request: HTTPRequest, facts: RequestFacts, stored: StoredResponse, index: Int, now: Instant,
        stale: StalePermission? = nil
    ) -> ServedResponse? {
        let age = stored.policy.ageMilliseconds(at: now)
        var served = ServedResponse(
            index: index, head: stored.head, content: .none, ageMilliseconds: age,
            lifetimeMilliseconds: stored.policy.lifetimeMilliseconds, stale: stale, background: nil)
        if isNotModified(request, facts: facts, stored: stored, now: now) {
            Self.makeNotModified(&served.head)
        } else if request.method == .head {
            guard stored.body.isComplete, let total = stored.body.total else { return nil }
            // RFC 9110 section 9.3.2: as GET has it.
            if stored.head.status != .noContent, !served.head.headerFields.contains(.contentLength) {
                served.head.headerFields.set(.contentLength, String(total))
            }
        } else {
            switch rangeAnswer(request, facts: facts, stored: stored, now: now) {
            case .whole: served.content = .whole
            case .ranges(let ranges, let total): makePartial(&served, ranges, total, facts: facts, stored: stored)
            case .unsatisfiable(let total): Self.makeUnsatisfiable(&served, total)
            case .missing, .otherUnit: return nil
            }
        }
        // Section 5.1; it replaces the value that came with the response.
        served.head.headerFields.set(.age, String(min(age / 1_000, DeltaSeconds.maximum)))
        return served
    }

    /// RFC 9110 section 15.4.5: everything that guides caches stays, metadata of the representation is removed.
    private static func makeNotModified(_ head: inout HTTPResponse) {
        head.status = .notModified
        for name in missingFromNotModified { head.headerFields.remove(name) }
        if head.headerFields.contains(.eTag) { head.headerFields.remove(.lastModified) }
    }

    /// And `Last-Modified`, beside an entity tag.
    static let missingFromNotModified: [HTTPField.Name] = [
        .contentType, .contentEncoding, .contentLanguage, .contentLength, .contentRange,
    ]

    /// RFC 9110 section 15.3.7: 206 with one range, or several as multipart.
    private func makePartial(
        _ served: inout ServedResponse, _ ranges: [Range<Int64>], _ total: Int64?, facts: RequestFacts,
        stored: StoredResponse
    ) {
        served.head.status = .partialContent
        if facts.hasIfRange {
            // The client has the rest already: only the required fields (section 15.3.7).
            for name: HTTPField.Name in [.contentEncoding, .contentLanguage, .lastModified] {
                served.head.headerFields.remove(name)
            }
        }
        let contentType = stored.head.headerFields[.contentType]
        if ranges.count == 1 || total == nil {
            if facts.hasIfRange { served.head.headerFields.remove(.contentType) }
            served.content = .range(ranges[0])
            served.head.headerFields.set(
                .contentRange, ContentRange(range: ranges[0], completeLength: total).fieldValue)
            served.head.headerFields.set(.contentLength, String(ranges[0].count))
            return
        }
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in stored.head.headerFields.combined(.eTag) ?? [] { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        hash = (hash ^ UInt64(bitPattern: stored.responseTime.milliseconds)) &* 0x9E37_79B9_7F4A_7C15
        let boundary = "larder-" + String(hash, radix: 36) + String(UInt64(bitPattern: total ?? 0), radix: 36)
        let multipart = MultipartRanges(ranges: ranges, total: total ?? 0, boundary: boundary, contentType: contentType)
        served.content = .multipart(multipart)
        served.head.headerFields.remove(.contentRange)
        served.head.headerFields.set(.contentType, "multipart/byteranges; boundary=\(boundary)")
        served.head.headerFields.set(.contentLength, String(multipart.contentLength))
    }

    /// RFC 9110 section 15.5.17.
    static func makeUnsatisfiable(_ served: inout ServedResponse, _ total: Int64) {
        served.head.status = .rangeNotSatisfiable
        for name: HTTPField.Name in [.contentType, .contentEncoding, .contentLanguage, .contentLength] {
            served.head.headerFields.remove(name)
        }
        served.head.headerFields.set(.contentRange, ContentRange(range: nil, completeLength: total).fieldValue)
        served.head.headerFields.set(.contentLength, "0")
    }

    /// The 504 (Gateway Timeout) answer where no stored response may be used and none can be fetched (RFC 9111
    /// sections 4.2.4 and 5.2.1.7).
    static var gatewayTimeout: HTTPResponse {
        HTTPResponse(status: .gatewayTimeout, headerFields: [.contentLength: "0", .cacheControl: "no-store"])
    }
}
