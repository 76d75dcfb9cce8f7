import HTTPCaching
import HTTPTypes
import Larder

/// Requests whose content is part of the key: QUERY (RFC 10008 section 2.7).
enum QueryContent {
    static let method = "QUERY"

    /// Reads the content of a request that is needed for its key.
    ///
    /// - Parameter limit: ``HTTPCacheConfiguration/queryContentLimit``.
    /// - Returns: the content in memory, to be sent as often as needed; or, where it is longer or cannot be read, the
    ///   same stream with what was read of it put back.
    static func gathered(_ body: RequestBody, limit: Int) async -> RequestBody {
        if body.bytes != nil || body.length ?? 0 > Int64(limit) { return body }
        let pull = body.makePull()
        var bytes: [UInt8] = []
        do {
            while let piece = try await pull() {
                bytes += piece
                if bytes.count > limit { return RequestBody(length: body.length, first: bytes, then: pull) }
            }
        } catch {
            return RequestBody(length: body.length, first: bytes) { throw error }
        }
        // A length that does not hold is for the transport to refuse.
        if let length = body.length, length != Int64(bytes.count) {
            return RequestBody(length: length, first: bytes) { nil }
        }
        return RequestBody(bytes)
    }

    /// What the content of a QUERY and its metadata add to the key. Each value of the metadata is preceded by its
    /// length, so that two different requests never give the same text.
    static func additions(_ request: HTTPRequest, content: [UInt8]) -> String {
        let names: [HTTPField.Name] = [.contentType, .contentEncoding, .contentLanguage]
        var metadata: [UInt8] = []
        for name in names {
            let values = request.headerFields[values: name]
            metadata += Array("\(values.count) ".utf8)
            for value in values { metadata += Array("\(value.utf8.count):\(value)".utf8) }
        }
        return " content=\(Digest.of(content)) metadata=\(Digest.of(metadata))"
    }
}
