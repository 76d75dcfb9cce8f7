import Foundation
import HTTPTypes

/// The fields of responses on their way into the cache and out of it.
///
/// The user of a session should see what the network sent. The cache needs fields that fit its bytes, and writes
/// `Age`. So the values of the network are kept under other names.
enum NetworkFields {
    private static let encoding = HTTPField.Name("Larder-Content-Encoding")!
    private static let length = HTTPField.Name("Larder-Content-Length")!
    private static let age = HTTPField.Name("Larder-Age")!
    /// The response came without `Date`. The cache writes one (RFC 9110 section 6.6.1).
    private static let noDate = HTTPField.Name("Larder-No-Date")!

    private static let own = [encoding, length, age, noDate]

    /// The codings that URLSession takes off.
    private static let decoded: Set<String> = ["gzip", "x-gzip", "deflate", "br", "zstd"]

    /// The fields of a response as the cache is to see them.
    static func forCache(_ fields: HTTPFields, status: Int) -> HTTPFields {
        var result = fields
        // A response from elsewhere that has them would be taken for one of ours.
        for name in own { result[name] = nil }
        // A 304 without it leaves the stored one.
        if result[.date] == nil, status != 304 { result[noDate] = "?1" }
        if let value = result[.age] { result[age] = value }
        if let coding = result[.contentEncoding], status != 206, isDecoded(coding) {
            result[encoding] = coding
            result[.contentEncoding] = nil
            if let value = result[.contentLength] {
                result[length] = value
                result[.contentLength] = nil
            }
        }
        return result
    }

    private static func isDecoded(_ value: String) -> Bool {
        let codings = value.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces).lowercased() }
        return !codings.isEmpty && codings.allSatisfy { decoded.contains($0) || $0 == "identity" }
    }

    /// The fields of an answer as the network sent them.
    ///
    /// - Parameters:
    ///   - fields: of the answer of the cache.
    ///   - status: its status. A part of a body is never coded.
    ///   - isFromNetwork: whether the origin sent it now. False: its `Age` is the cache's.
    static func fromCache(_ fields: HTTPFields, status: Int, isFromNetwork: Bool) -> HTTPFields {
        var result = fields
        if !isFromNetwork { result[.age] = result[age] }
        if status != 206, let coding = result[encoding] {
            result[.contentEncoding] = coding
            result[.contentLength] = result[length]
        }
        if result[noDate] != nil { result[.date] = nil }
        for name in own { result[name] = nil }
        return result
    }

    /// The fields as a dictionary; lines of one name become one list, as URLSession does it.
    static func dictionary(_ fields: HTTPFields) -> [String: String] {
        var names: [String: String] = [:]
        var result: [String: String] = [:]
        for field in fields {
            let name = names[field.name.canonicalName] ?? field.name.rawName
            names[field.name.canonicalName] = name
            result[name] = result[name].map { "\($0), \(field.value)" } ?? field.value
        }
        return result
    }

    /// The fields of a dictionary. Names that are not tokens are left out: they cannot be sent either.
    static func fields(_ dictionary: [AnyHashable: Any]) -> HTTPFields {
        var result = HTTPFields()
        for (name, value) in dictionary.sorted(by: { "\($0.key)" < "\($1.key)" }) {
            guard let name = HTTPField.Name("\(name)") else { continue }
            result.append(HTTPField(name: name, value: "\(value)"))
        }
        return result
    }
}
