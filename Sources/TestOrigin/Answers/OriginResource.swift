/// A resource as a correct origin serves it: with validators, conditional requests and ranges (RFC 9110 sections 13 and
/// 14).
///
/// ```swift
/// let page = OriginResource("hello", etag: "\"1\"")
/// origin.script("/page") { page.answer($0).header("Cache-Control", "max-age=60") }
/// ```
///
/// Dates are compared as strings, as many servers do: a client has to send back the date that it received.
public struct OriginResource: Sendable {
    /// The whole content.
    public var content: [UInt8]
    /// The entity tag, quotes included.
    public var etag: String?
    /// The value of `Last-Modified`.
    public var lastModified: String?
    /// Sent with every answer except 412 and 416.
    public var fields: [OriginAnswer.Field]

    /// A resource of bytes.
    /// - Parameters:
    ///   - content: the whole content.
    ///   - etag: the entity tag, quotes included. Default: none.
    ///   - lastModified: the value of `Last-Modified`. Default: none.
    ///   - fields: sent with every answer except 412 and 416. Default: none.
    public init(
        _ content: [UInt8], etag: String? = nil, lastModified: String? = nil, fields: [OriginAnswer.Field] = []
    ) {
        self.content = content
        self.etag = etag
        self.lastModified = lastModified
        self.fields = fields
    }

    /// A resource of text.
    /// - Parameters:
    ///   - text: the whole content.
    ///   - etag: the entity tag, quotes included. Default: none.
    ///   - lastModified: the value of `Last-Modified`. Default: none.
    ///   - fields: sent with every answer except 412 and 416. Default: none.
    public init(
        _ text: String, etag: String? = nil, lastModified: String? = nil, fields: [OriginAnswer.Field] = []
    ) {
        self.init(Array(text.utf8), etag: etag, lastModified: lastModified, fields: fields)
    }

    /// 200, 206, 304, 412 or 416, depending on the request's conditions and ranges.
    /// - Parameter request: the request that the origin received.
    public func answer(_ request: OriginRequest) -> OriginAnswer {
        // The order of RFC 9110 section 13.2.2.
        if let tags = request["If-Match"], !matches(tags, strongly: true) { return .status(412) }
        if let tags = request["If-None-Match"] {
            if matches(tags, strongly: false) {
                return request.method == "GET" || request.method == "HEAD" ? described(.notModified) : .status(412)
            }
        } else if let date = request["If-Modified-Since"], date == lastModified {
            return described(.notModified)
        }
        guard request.method == "GET", let range = request["Range"], rangeApplies(request) else {
            return described(.status(200)).content(content)
        }
        return answer(range)
    }

    private func described(_ answer: OriginAnswer) -> OriginAnswer {
        var answer = answer
        if let etag { answer = answer.header("ETag", etag) }
        if let lastModified { answer = answer.header("Last-Modified", lastModified) }
        answer.fields += fields
        return answer
    }

    private func matches(_ list: String, strongly: Bool) -> Bool {
        guard let etag else { return false }
        if list == "*" { return true }
        let own = opaque(etag)
        return list.split(separator: ",").contains { member in
            let tag = trimmed(member)
            if strongly && (tag.hasPrefix("W/") || etag.hasPrefix("W/")) { return false }
            return opaque(tag) == own
        }
    }

    private func opaque(_ tag: String) -> String { tag.hasPrefix("W/") ? String(tag.dropFirst(2)) : tag }

    /// If-Range: the range counts only for the same content (RFC 9110 section 13.1.5).
    private func rangeApplies(_ request: OriginRequest) -> Bool {
        guard let validator = request["If-Range"] else { return true }
        if validator.hasPrefix("\"") { return validator == etag }
        return validator == lastModified
    }

    private func answer(_ field: String) -> OriginAnswer {
        guard let ranges = parse(field) else { return described(.status(200)).content(content) }
        let total = content.count
        switch ranges.count {
        case 0:
            return .status(416).header("Content-Range", "bytes */\(total)")
        case 1:
            return described(.status(206)).content(Array(content[ranges[0]]))
                .header("Content-Range", "bytes \(ranges[0].lowerBound)-\(ranges[0].upperBound - 1)/\(total)")
        default:
            let boundary = "part-of-the-test-origin"
            var body: [UInt8] = []
            for range in ranges {
                body += Array("--\(boundary)\r\nContent-Range: bytes ".utf8)
                body += Array("\(range.lowerBound)-\(range.upperBound - 1)/\(total)\r\n\r\n".utf8)
                body += content[range] + Array("\r\n".utf8)
            }
            body += Array("--\(boundary)--\r\n".utf8)
            return described(.status(206)).content(body)
                .header("Content-Type", "multipart/byteranges; boundary=\(boundary)")
        }
    }

    /// The satisfiable ranges; nil if the field need not be understood.
    private func parse(_ field: String) -> [Range<Int>]? {
        guard field.lowercased().hasPrefix("bytes=") else { return nil }
        var ranges: [Range<Int>] = []
        for member in field.dropFirst("bytes=".count).split(separator: ",") {
            let ends = trimmed(member).split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
            guard ends.count == 2 else { return nil }
            switch (Int(ends[0]), Int(ends[1])) {
            case (let first?, let last?):
                guard first <= last else { return nil }
                if first < content.count { ranges.append(first..<min(last, content.count - 1) + 1) }
            case (let first?, nil) where ends[1].isEmpty:
                if first < content.count { ranges.append(first..<content.count) }
            case (nil, let suffix?) where ends[0].isEmpty:
                if suffix > 0, !content.isEmpty { ranges.append(max(0, content.count - suffix)..<content.count) }
            default:
                return nil
            }
        }
        return ranges
    }

    private func trimmed(_ text: Substring) -> String {
        String(text.drop { $0 == " " || $0 == "\t" }.reversed().drop { $0 == " " || $0 == "\t" }.reversed())
    }
}
