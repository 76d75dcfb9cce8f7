import HTTPCaching
import HTTPTypes

/// Fetching what a stored part lacks, gap by gap (RFC 9111 section 3.3).
extension Loader {
    /// The bytes of a gap: from the store, if another request brought them meanwhile, or from the origin.
    func loadGap(
        _ gap: Range<Int64>, of head: HTTPResponse, sent: HTTPRequest, for pending: LoadRequest
    ) async throws -> ResponseBody {
        try await loadGap(from: gap.lowerBound, to: gap.upperBound, of: head, sent: sent, for: pending)
    }

    /// - Parameters:
    ///   - start: the position of the first byte.
    ///   - end: the position after the last one; nil for the end of the representation.
    ///   - head: of the representation that they have to belong to.
    ///   - sent: the request that brought the first gap: its `If-Range` makes the origin answer with the whole when the
    ///     representation is another by now.
    /// - Throws: ``FetchError/Code/origin`` then. The client has a part of the old one already, and has to ask again.
    func loadGap(
        from start: Int64, to end: Int64?, of head: HTTPResponse, sent: HTTPRequest, for pending: LoadRequest
    ) async throws -> ResponseBody {
        func request(_ client: HTTPRequest) -> HTTPRequest {
            var request = client
            // Conditions were the client's business with the whole; what it says of staleness was heard with the first
            // gap.
            for name: HTTPField.Name in [.ifNoneMatch, .ifModifiedSince, .cacheControl, .pragma] {
                request.headerFields[name] = nil
            }
            request.headerFields[.range] = "bytes=\(start)-" + (end.map { String($0 - 1) } ?? "")
            request.headerFields[.ifRange] = sent.headerFields[.ifRange]
            return request
        }
        func isExpected(_ field: String) -> Bool {
            if let end {
                let total = head.headerFields[.contentLength].flatMap { Int64($0) }
                return field == ContentRange(range: start..<end, completeLength: total).fieldValue
            }
            // To its end, which it tells.
            guard let content = ContentRange(Array(field.utf8)), let range = content.range else { return false }
            return range.lowerBound == start && range.upperBound == content.completeLength
        }
        let url = pending.request.url
        let question = Question(
            request: request(pending.request), subject: request(pending.subject), hasContent: false,
            primary: pending.primary, plan: pending.plan, url: url, generation: pending.generation,
            search: pending.search, needsStored: true)
        let response: FetchResponse
        switch try await answer(question) {
        case .response(let stored): response = stored
        case .load(let pending): response = try await load(pending, body: nil, onInformational: nil)
        }
        let fields = response.head.headerFields
        guard response.head.status == .partialContent, let field = fields[.contentRange], isExpected(field),
            let range = ContentRange(Array(field.utf8))?.range,
            fields[.eTag] == head.headerFields[.eTag],
            fields[.eTag] != nil || fields[.lastModified] == nil
                || fields[.lastModified] == head.headerFields[.lastModified],
            rules.hasForm(of: head, response.head, isIfRange: sent.headerFields.contains(.ifRange))
        else {
            throw FetchError(
                .origin, url: url, "\(url) changed while the parts that the cache lacks were fetched: ask again")
        }
        if let length = response.body.length, length != Int64(range.count) {
            throw FetchError(.origin, url: url, "the origin sent another length than its Content-Range says")
        }
        let exact = ExactBody(response.body, count: range.count, url: url)
        return ResponseBody(length: Int64(range.count)) { try await exact.next() }
    }
}
