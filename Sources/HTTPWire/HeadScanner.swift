#if canImport(Darwin)
    import Darwin
#elseif canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// Finds the end of a head in bytes that arrive in pieces, looking at each byte once.
package struct HeadScanner: Sendable {
    private let limits: HeadLimits
    private let skipsEmptyLine: Bool
    private var searched = 0
    private var start = 0
    private var lineStart = 0
    private var lines = 0

    /// - Parameters:
    ///   - limits: of the head.
    ///   - isRequest: whether an empty line before the start line is passed over: "a server that is expecting to
    ///     receive and parse a request-line SHOULD ignore at least one empty line (CRLF) received prior to the
    ///     request-line" (RFC 9112 section 2.2). One is.
    package init(limits: HeadLimits = HeadLimits(), isRequest: Bool) {
        self.limits = limits
        self.skipsEmptyLine = isRequest
    }

    /// Looks for the end of the head.
    /// - Parameter bytes: all bytes since the last message's end, those of earlier calls included.
    /// - Returns: the head with its empty line, or nil while that has not arrived. The scanner then starts again only
    ///   after ``reset()``.
    /// - Throws: as soon as it is certain that the head cannot be right. The same error however the bytes were cut.
    package mutating func scan(_ bytes: UnsafeRawBufferPointer) throws(WireError) -> Range<Int>? {
        while searched < bytes.count, let feed = bytes.firstLineFeed(from: searched) {
            try checkSize(upTo: feed + 1)
            guard feed > lineStart, bytes[feed - 1] == Byte.carriageReturn else { throw .bareLineFeed }
            searched = feed + 1
            let isEmpty = feed - 1 == lineStart
            lineStart = searched
            if isEmpty {
                if lines > 0 { return start..<searched }
                guard skipsEmptyLine, start == 0 else {
                    throw skipsEmptyLine ? .invalidMethod : .invalidVersion
                }
                start = searched
            } else {
                lines += 1
                if lines > limits.fields + 1 { throw .tooManyFields }
            }
        }
        searched = bytes.count
        try checkSize(upTo: bytes.count)
        return nil
    }

    /// Whether anything but an empty line has been seen.
    package var hasBegun: Bool { searched > start }

    /// Prepares for the next message, whose first byte is at index 0 of the next call's bytes.
    package mutating func reset() {
        searched = 0
        start = 0
        lineStart = 0
        lines = 0
    }

    /// The size of the head, and that of its first line, up to an index.
    private func checkSize(upTo end: Int) throws(WireError) {
        if lines == 0, end - start > limits.startLineBytes {
            throw skipsEmptyLine ? .requestLineTooLong : .headTooLarge
        }
        if end - start > limits.headBytes { throw .headTooLarge }
    }
}

extension UnsafeRawBufferPointer {
    /// The first LF from `start`; nil where there is none.
    fileprivate func firstLineFeed(from start: Int) -> Int? {
        guard let base = baseAddress, start < count,
            // SAFETY: `count - start` bytes from `start` are within the buffer.
            let found = memchr(base + start, CInt(Byte.lineFeed), count - start)
        else { return nil }
        return UnsafeRawPointer(found) - base
    }
}
