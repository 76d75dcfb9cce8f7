/// The parts of a request's head as ranges of its bytes: to decide on a request before anything is allocated for it.
///
/// Keep one for all connections of a thread: ``parse(_:limits:)`` uses the room of the last head again. Ranges are of
/// the bytes given to ``parse(_:limits:)``.
package struct RequestHeadView: Sendable {
    /// The forms of a request target (RFC 9112 section 3.2).
    package enum TargetForm: UInt8, Hashable, Sendable {
        case origin, absolute, authority, asterisk
    }

    package internal(set) var method = 0..<0
    package internal(set) var target = 0..<0
    package internal(set) var targetForm = TargetForm.origin
    /// `http` or `https`, of a target in absolute form.
    package internal(set) var scheme: Range<Int>?
    /// Host and port that the request is for: of the target, which has precedence over `Host` (RFC 9112 section 3.2.2),
    /// else of `Host`. Nil in HTTP/1.0 only.
    package internal(set) var authority: Range<Int>?
    /// Path and query as written. Empty, or beginning with `?`, in a target in absolute form that has no path.
    package internal(set) var path = 0..<0
    package internal(set) var version = HTTPVersion.http11
    /// All field lines, `Host` included.
    package internal(set) var fields: [FieldLine] = []
    package internal(set) var framing = BodyFraming.none
    /// Whether the client lets the connection stay open.
    package internal(set) var persists = true
    /// `Expect: 100-continue`, which in HTTP/1.0 means nothing (RFC 9110 section 10.1.1).
    package internal(set) var expectsContinue = false

    package init() {}

    /// Reads a head.
    /// - Parameters:
    ///   - bytes: a head with its empty line, as ``HeadScanner`` finds it.
    ///   - limits: of the number of fields; the scanner has seen to the sizes.
    package mutating func parse(_ bytes: UnsafeRawBufferPointer, limits: HeadLimits = HeadLimits()) throws(WireError) {
        fields.removeAll(keepingCapacity: true)
        var index = 0
        try parseRequestLine(bytes, &index)
        try FieldLine.parse(bytes, from: index, rules: .request, maximum: limits.fields, into: &fields)

        var framingFields = FramingFields()
        var host: Range<Int>?
        for line in fields where line.kind != .other {
            if line.kind == .host {
                guard host == nil else { throw .repeatedHost }
                host = line.value
            } else {
                try framingFields.add(line, in: bytes)
            }
        }
        try parseTarget(bytes)
        try settle(host, bytes)
        framing = try framingFields.requestFraming(version: version)
        persists = version.persists(close: framingFields.close, keepAlive: framingFields.keepAlive)
        expectsContinue = framingFields.expectsContinue && version == .http11
    }

    /// `method SP request-target SP HTTP-version CRLF` (RFC 9112 section 3).
    private mutating func parseRequestLine(_ bytes: UnsafeRawBufferPointer, _ index: inout Int) throws(WireError) {
        while index < bytes.count, bytes[index].isTokenCharacter { index &+= 1 }
        guard index < bytes.count else { throw .incomplete }
        method = 0..<index
        guard !method.isEmpty, bytes[index] == Byte.space else { throw .invalidMethod }
        index &+= 1

        let start = index
        while index < bytes.count, bytes[index].isTargetCharacter { index &+= 1 }
        guard index < bytes.count else { throw .incomplete }
        target = start..<index
        guard !target.isEmpty else { throw .invalidTarget }
        guard bytes[index] == Byte.space else {
            // "GET /" alone is HTTP/0.9.
            throw bytes[index] == Byte.carriageReturn ? .invalidVersion : .invalidTarget
        }
        index &+= 1

        let digits = try StartLine.version(bytes, &index)
        guard index < bytes.count else { throw .incomplete }
        // Blanks in the target make the version look wrong.
        guard bytes[index] == Byte.carriageReturn else { throw .invalidVersion }
        index = try FieldLine.lineEnd(bytes, at: index)
        guard digits.major == 1, let version = HTTPVersion(rawValue: digits.minor) else { throw .unsupportedVersion }
        self.version = version
    }

    /// RFC 9112 section 3.2: "A server MUST respond with a 400 (Bad Request) status code to any HTTP/1.1 request
    /// message that lacks a Host header field and to any request message that contains more than one Host header field
    /// line or a Host header field with an invalid field value."
    private mutating func settle(_ host: Range<Int>?, _ bytes: UnsafeRawBufferPointer) throws(WireError) {
        guard let host else {
            if version == .http11 { throw .missingHost }
            return
        }
        // An empty Host says that the target has no host, which is not a request for http (RFC 9110 section 4.2.1).
        let isNeeded = authority == nil
        guard host.isEmpty ? !isNeeded : HostSyntax.isValid(bytes, host) else { throw .invalidHost }
        if isNeeded { authority = host }
    }
}

extension RequestHeadView {
    /// The first field of a name, which is given in lower case.
    package func first(_ name: StaticString, in bytes: UnsafeRawBufferPointer) -> FieldLine? {
        for line in fields where bytes.spells(name, at: line.name) { return line }
        return nil
    }

    /// Whether the method is this one, byte for byte.
    package func isMethod(_ name: StaticString, in bytes: UnsafeRawBufferPointer) -> Bool {
        bytes.equals(name, at: method)
    }
}

extension UnsafeRawBufferPointer {
    /// Whether the range is `text`, byte for byte.
    func equals(_ text: StaticString, at range: Range<Int>) -> Bool {
        guard range.count == text.utf8CodeUnitCount else { return false }
        for index in 0..<range.count where self[range.lowerBound &+ index] != text.utf8Start[index] { return false }
        return true
    }
}
