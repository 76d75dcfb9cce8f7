import HTTPCaching
import HTTPTypes
import Larder
import LarderHTTP

/// Sends bodies that the store holds compressed as they are, to clients that accept gzip: RFC 9110 sections 8.4 and
/// 12.5.3. Other clients get the body itself. Ranges and answers to HEAD are those of the body itself.
///
/// The compressed form is another representation, so its entity tag is weak: two representations never share a strong
/// one (RFC 9110 section 8.8.3.3).
enum StoredCoding {
    /// The answer as this client is to get it.
    static func answer(_ response: FetchResponse, to request: HTTPRequest) -> FetchResponse {
        var response = response
        if response.head.status == .notModified {
            if accepts(request), namesWeakly(response.head.headerFields[.eTag], request) { weaken(&response.head) }
            return response
        }
        let member = response.body.compressedForm
        guard member != nil || response.body.isMadeOfCompressed else { return response }
        addVary(&response.head.headerFields)
        guard let member, response.head.status == .ok, request.method == .get, accepts(request),
            !forbidden.contains(where: { response.head.headerFields.contains($0) }),
            !forbidsTransformation(request.headerFields), !forbidsTransformation(response.head.headerFields)
        else { return response }
        weaken(&response.head)
        response.head.headerFields[.contentEncoding] = "gzip"
        response.head.headerFields[.contentLength] = "\(member.length.bytes)"
        response.head.headerFields[.acceptRanges] = nil
        response.body = ResponseBody([.stored(.complete(member), 0..<member.length.bytes)])
        return response
    }

    /// Fields that say something of the bytes of the body: RFC 9530, RFC 3230, RFC 1864.
    private static let forbidden: [HTTPField.Name] =
        [.contentEncoding] + ["Content-Digest", "Repr-Digest", "Digest", "Content-MD5"].compactMap { .init($0) }

    private static func accepts(_ request: HTTPRequest) -> Bool {
        request.headerFields.contains(.acceptEncoding)
            && CacheRules.foldedAcceptEncoding(request.headerFields, to: ["gzip"]) == "gzip"
    }

    /// `no-transform`: RFC 9111 sections 5.2.1.6 and 5.2.2.6.
    private static func forbidsTransformation(_ fields: HTTPFields) -> Bool {
        members(fields[values: .cacheControl]).contains { $0.lowercased() == "no-transform" }
    }

    /// True if the client has the representation with this tag as this gateway weakened it.
    private static func namesWeakly(_ tag: String?, _ request: HTTPRequest) -> Bool {
        guard let tag, tag.hasPrefix("\"") else { return false }
        return members(request.headerFields[values: .ifNoneMatch]).contains("W/" + tag)
    }

    private static func weaken(_ head: inout HTTPResponse) {
        addVary(&head.headerFields)
        guard let tag = head.headerFields[.eTag], tag.hasPrefix("\"") else { return }
        head.headerFields[.eTag] = "W/" + tag
    }

    private static func addVary(_ fields: inout HTTPFields) {
        let names = members(fields[values: .vary]).map { $0.lowercased() }
        if names.contains("accept-encoding") || names.contains("*") { return }
        fields.append(HTTPField(name: .vary, value: "Accept-Encoding"))
    }

    private static func members(_ values: [String]) -> [String] {
        values.flatMap { $0.split(separator: ",") }.map { member in
            String(member.drop { $0 == " " || $0 == "\t" }.reversed().drop { $0 == " " || $0 == "\t" }.reversed())
        }
    }
}
