import HTTPCaching
import HTTPTypes
import Larder
import LarderHTTP

/// Sends bodies that the store holds compressed as they are, to clients that accept gzip: RFC 9110 sections 8.4 and
/// 12.5.3. Other clients get the body itself, as do all that ask for ranges of it.
///
/// The compressed form is another representation, so its entity tag is weak: two representations never share a strong
/// one (RFC 9110 section 8.8.3.3).
enum StoredCoding {
    /// The answer as this client is to get it. HEAD and 304 have the fields of a GET: RFC 9110 sections 9.3.2 and
    /// 15.4.5.
    static func answer(_ response: FetchResponse, to request: HTTPRequest) -> FetchResponse {
        let member = response.body.compressedForm ?? response.unsentMember
        guard member != nil || response.body.isMadeOfCompressed else { return response }
        var response = response
        addVary(&response.head.headerFields)
        guard let member, accepts(request), request.method == .get || request.method == .head,
            !forbidden.contains(where: { response.head.headerFields.contains($0) }),
            !forbidsTransformation(request.headerFields), !forbidsTransformation(response.head.headerFields)
        else { return response }
        switch response.head.status {
        case .notModified: weaken(&response.head)
        case .ok:
            weaken(&response.head)
            response.head.headerFields[.contentEncoding] = "gzip"
            response.head.headerFields[.contentLength] = "\(member.length.bytes)"
            response.head.headerFields[.acceptRanges] = nil
            guard request.method == .get else { break }
            response.body = ResponseBody([.stored(.complete(member), 0..<member.length.bytes)])
        default: break
        }
        return response
    }

    /// Fields that say something of the bytes of the body: RFC 9530, RFC 3230, RFC 1864.
    static let forbidden: [HTTPField.Name] =
        [.contentEncoding] + ["Content-Digest", "Repr-Digest", "Digest", "Content-MD5"].compactMap { .init($0) }

    private static func accepts(_ request: HTTPRequest) -> Bool {
        request.headerFields.contains(.acceptEncoding)
            && CacheRules.foldedAcceptEncoding(request.headerFields, to: ["gzip"]) == "gzip"
    }

    /// `no-transform`: RFC 9111 sections 5.2.1.6 and 5.2.2.6.
    private static func forbidsTransformation(_ fields: HTTPFields) -> Bool {
        members(fields[values: .cacheControl]).contains { $0.lowercased() == "no-transform" }
    }

    private static func weaken(_ head: inout HTTPResponse) {
        guard let tag = head.headerFields[.eTag], tag.hasPrefix("\"") else { return }
        head.headerFields[.eTag] = "W/" + tag
    }

    private static func addVary(_ fields: inout HTTPFields) {
        let names = members(fields[values: .vary]).map { $0.lowercased() }
        if names.contains("accept-encoding") || names.contains("*") { return }
        fields.append(HTTPField(name: .vary, value: "Accept-Encoding"))
    }

    private static func members(_ values: [String]) -> [String] {
        values.flatMap { FieldBytes.members(Array($0.utf8)) }.map { String(decoding: $0, as: UTF8.self) }
    }
}
