/// A `multipart/byteranges` body (RFC 9110 section 14.6): the bytes between the ranges, and the total length.
public struct MultipartRanges: Sendable, Hashable {
    /// The ranges in the order they are sent; at least two.
    public let ranges: [Range<Int64>]
    /// The length of the whole representation.
    public let total: Int64
    /// The boundary, without the leading dashes.
    public let boundary: String
    /// The representation's `Content-Type`, repeated in each part; nil if it has none.
    public let contentType: String?

    /// The bytes before the content of a part.
    /// - Parameter index: the position of the part in ``ranges``.
    ///
    /// - Returns: the delimiter, the fields of the part and the empty line.
    public func header(of index: Int) -> [UInt8] {
        var text = index == 0 ? "--\(boundary)\r\n" : "\r\n--\(boundary)\r\n"
        if let contentType { text += "Content-Type: \(contentType)\r\n" }
        text += "Content-Range: \(ContentRange(range: ranges[index], completeLength: total).fieldValue)\r\n\r\n"
        return Array(text.utf8)
    }

    /// The bytes after the last part.
    public var trailer: [UInt8] { Array("\r\n--\(boundary)--\r\n".utf8) }

    /// The length of the whole body in bytes.
    public var contentLength: Int64 {
        ranges.indices.reduce(Int64(trailer.count)) {
            $0.addingSaturating(Int64(header(of: $1).count)).addingSaturating(Int64(ranges[$1].count))
        }
    }
}
