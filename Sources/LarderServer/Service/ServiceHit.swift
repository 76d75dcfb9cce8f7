import LarderHTTP

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
    /// The value of `Content-Length`, where ``fields`` needs one and has none.
    let missingLength: Int64?
    let cached: Cached?
    let content: PlainHit.Content
    /// What is sent of the content, in bytes from its start.
    let range: Range<Int64>

    /// An answer with status 200.
    /// - Parameter fields: without `Date` and `Content-Length`.
    package init(fields: UnsafeRawBufferPointer, content: PlainHit.Content, length: Int64) {
        status = 200
        self.fields = fields
        missingLength = length
        cached = nil
        self.content = content
        range = 0..<length
    }

    /// A response of a cache.
    /// - Parameter fields: see ``Cached/fields``.
    package init(_ hit: PlainHit, _ fields: [UInt8]) {
        status = hit.status
        self.fields = hit.fields
        missingLength = hit.missingLength
        cached = Cached(ageSeconds: hit.ageSeconds, freshSeconds: hit.freshSeconds, fields: fields)
        content = hit.content
        range = hit.range
    }
}
