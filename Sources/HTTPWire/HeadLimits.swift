/// How large a head may be.
package struct HeadLimits: Hashable, Sendable {
    /// Bytes of a head, its empty line included. Default: 64 KiB.
    package let headBytes: Int
    /// Bytes of a start line. RFC 9112 section 3 wants at least 8,000. Default: 16 KiB; never more
    /// than `headBytes`.
    package let startLineBytes: Int
    /// Field lines. `HTTPFields` holds less than 65,535, and a greater limit counts as that. Default: 256.
    package let fields: Int

    package init(headBytes: Int = 64 << 10, startLineBytes: Int = 16 << 10, fields: Int = 256) {
        self.headBytes = headBytes
        self.startLineBytes = min(startLineBytes, headBytes)
        self.fields = min(fields, 65_000)
    }
}
