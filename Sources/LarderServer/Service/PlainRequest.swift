import HTTPWire
import LarderHTTP

/// A GET over HTTP/1.1, with a target in origin form, and without content and any field on which its answer may depend
/// beyond the URL but for credentials. Valid inside the call that it is handed to only.
package struct PlainRequest {
    package let head: UnsafeRawBufferPointer
    package let authority: Range<Int>?
    package let path: Range<Int>
    /// Whether it has `Authorization`.
    package let hasCredentials: Bool
    /// Whether it came without TLS.
    package let isPlaintext: Bool

    /// The target as the client sent it.
    package var target: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: head[path]) }
}

/// An answer that is at hand. Valid inside the call it is handed to only.
package struct ServiceHit {
    /// What a cache adds.
    struct Cached {
        let ageSeconds: Int64
        let freshSeconds: Int64
        /// What follows the age and the length, up to the seconds of freshness that are left.
        let fields: [UInt8]
    }

    let status: Int
    /// Fields as they go over the connection: `name: value` and CR LF for each. Without `Age`; without `Date` where no
    /// cache answers.
    let fields: UnsafeRawBufferPointer
    let hasContentLength: Bool
    let cached: Cached?
    let content: PlainHit.Content
    /// Of the content, in bytes.
    let length: Int64

    /// An answer with status 200.
    /// - Parameter fields: without `Date` and `Content-Length`.
    package init(fields: UnsafeRawBufferPointer, content: PlainHit.Content, length: Int64) {
        status = 200
        self.fields = fields
        hasContentLength = false
        cached = nil
        self.content = content
        self.length = length
    }

    /// A response of a cache.
    /// - Parameter fields: see ``Cached/fields``.
    package init(_ hit: PlainHit, _ fields: [UInt8]) {
        status = hit.status
        self.fields = hit.fields
        hasContentLength = hit.hasContentLength
        cached = Cached(ageSeconds: hit.ageSeconds, freshSeconds: hit.freshSeconds, fields: fields)
        content = hit.content
        length = hit.length
    }
}
