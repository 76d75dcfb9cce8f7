import HTTPCaching
import Larder

/// The answer that one stored response gives to GET or HEAD: fresh, and complete or with the range that is asked for,
/// ready to be sent over HTTP/1.1. Valid only inside the call that receives it.
package struct PlainHit {
    /// The place of the bytes of the content.
    package enum Content {
        /// In the store's mapping, or in memory for its next commit.
        case bytes(UnsafeRawBufferPointer)
        /// In memory: the value that was made of the content.
        case held(any Sendable, Digest)
        /// In a file, perhaps encrypted, or compressed.
        case stored(Body, Digest)
        /// In the file of a part, which is not encrypted.
        case part(PartialBody)
        /// What is stored is a gzip member: it is sent to who accepts that, after ``PlainHit/sending(_:length:_:)``.
        case member(Member)
        /// There is none: an answer to HEAD, or 304.
        case none
    }

    /// The place of a gzip member that is stored for the content.
    package enum Member {
        /// In the store's mapping.
        case bytes(UnsafeRawBufferPointer)
        /// In memory: the value that was made of it, and the digest of the content.
        case held(any Sendable, Digest)
    }

    /// The status code.
    package let status: Int
    /// The stored fields in the form for the connection: `name: value` and CR LF for each, without `Age`.
    package let fields: UnsafeRawBufferPointer
    /// The value of `Content-Length`, where ``fields`` needs one and has none.
    package let missingLength: Int64?
    /// The age for the `Age` field, in seconds.
    package let ageSeconds: Int64
    /// Seconds of freshness left.
    package let freshSeconds: Int64
    /// The content that ``range`` is a part of.
    package let content: Content
    /// What is sent of the content, in bytes from its start.
    package let range: Range<Int64>

    /// With the content that is in a part.
    func sending(_ part: PartialBody) -> PlainHit {
        PlainHit(
            status: status, fields: fields, missingLength: missingLength, ageSeconds: ageSeconds,
            freshSeconds: freshSeconds, content: .part(part), range: range)
    }

    /// With another form of the content, of which all is sent.
    package func sending(_ content: Content, length: Int64, _ fields: UnsafeRawBufferPointer) -> PlainHit {
        PlainHit(
            status: status, fields: fields, missingLength: length, ageSeconds: ageSeconds, freshSeconds: freshSeconds,
            content: content, range: 0..<length)
    }
}
