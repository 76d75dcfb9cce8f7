import HTTPTypes
import NIOCore

/// Reads requests from a connection.
struct RequestReader {
    struct Malformed: Error {
        var message: String
        init(_ message: String) { self.message = message }
    }

    private static let headLimit = 1 << 20

    private var source: NIOAsyncChannelInboundStream<ByteBuffer>.AsyncIterator
    private var buffer = ByteBuffer()

    init(_ source: NIOAsyncChannelInboundStream<ByteBuffer>.AsyncIterator) { self.source = source }

    /// The next head; nil at the end of the connection.
    mutating func head(connection: Int) async throws -> OriginRequest? {
        var raw: [UInt8] = []
        var lines: [Substring] = []
        while true {
            guard let line = try await line() else {
                if raw.isEmpty { return nil }
                throw Malformed("the connection ended within a head")
            }
            // An empty line before a request is skipped: RFC 9112 section 2.2.
            if line.isEmpty && raw.isEmpty { continue }
            raw += line + [13, 10]
            if line.isEmpty { break }
            lines.append(Substring(decoding: line, as: UTF8.self))
            if raw.count > Self.headLimit { throw Malformed("a head of more than \(Self.headLimit) bytes") }
        }
        let words = lines[0].split(separator: " ", omittingEmptySubsequences: false)
        guard words.count == 3, words[2].hasPrefix("HTTP/1."), let minor = Int(words[2].dropFirst(7)) else {
            throw Malformed("not a request line: '\(lines[0])'")
        }
        return OriginRequest(
            method: String(words[0]), target: String(words[1]), minorVersion: minor,
            fields: try Self.fields(lines.dropFirst()), rawHead: raw, connection: connection, order: 0, count: 0)
    }

    /// The next piece of content, and when it is the last whether there was any at all.
    mutating func body(of request: inout OriginRequest) async throws {
        let lengths = request.fields[values: .contentLength]
        if let coding = request["Transfer-Encoding"] {
            guard coding.lowercased() == "chunked" else { throw Malformed("the transfer coding '\(coding)'") }
            // Both together is how requests are smuggled: RFC 9112 section 6.3.
            guard lengths.isEmpty else { throw Malformed("both Transfer-Encoding and Content-Length") }
            try await chunks(&request)
        } else if let text = lengths.first {
            guard lengths.count == 1, text.utf8.allSatisfy({ 48...57 ~= $0 }), let length = Int64(text) else {
                throw Malformed("the content length '\(lengths)'")
            }
            try await take(length, into: &request)
        }
        request.isComplete = true
    }

    private mutating func chunks(_ request: inout OriginRequest) async throws {
        while true {
            let line = try await lineInside()
            let digits = line.prefix { $0 != UInt8(ascii: ";") }
            guard let size = Int64(String(decoding: digits, as: UTF8.self), radix: 16), size >= 0 else {
                throw Malformed("the chunk size '\(String(decoding: line, as: UTF8.self))'")
            }
            if size == 0 { break }
            try await take(size, into: &request)
            guard try await lineInside().isEmpty else { throw Malformed("no line break after a chunk") }
        }
        var lines: [Substring] = []
        while case let line = try await lineInside(), !line.isEmpty {
            lines.append(Substring(decoding: line, as: UTF8.self))
        }
        request.trailers = try Self.fields(lines[...])
    }

    private mutating func take(_ length: Int64, into request: inout OriginRequest) async throws {
        var rest = length
        while rest > 0 {
            if buffer.readableBytes == 0, !(try await more()) {
                throw Malformed("the connection ended within a content: \(rest) bytes are missing")
            }
            let count = Int(min(rest, Int64(buffer.readableBytes)))
            let bytes = buffer.readBytes(length: count) ?? []
            rest -= Int64(count)
            request.bodyLength += Int64(count)
            request.body += bytes.prefix(TestOrigin.recordedBodyLimit - request.body.count)
        }
    }

    private mutating func lineInside() async throws -> [UInt8] {
        guard let line = try await line() else { throw Malformed("the connection ended within a content") }
        return line
    }

    private mutating func line() async throws -> [UInt8]? {
        while true {
            if let end = buffer.readableBytesView.firstIndex(of: 10) {
                let line = buffer.readBytes(length: end - buffer.readerIndex + 1) ?? []
                guard line.count >= 2, line[line.count - 2] == 13 else { throw Malformed("a line ends without CR") }
                return line.dropLast(2)
            }
            if buffer.readableBytes > Self.headLimit { throw Malformed("a line without an end") }
            if !(try await more()) {
                if buffer.readableBytes > 0 { throw Malformed("the connection ended within a line") }
                return nil
            }
        }
    }

    private mutating func more() async throws -> Bool {
        guard var next = try await source.next() else { return false }
        buffer.discardReadBytes()
        buffer.writeBuffer(&next)
        return true
    }

    private static func fields(_ lines: ArraySlice<Substring>) throws -> HTTPFields {
        var fields = HTTPFields()
        for line in lines {
            guard let colon = line.firstIndex(of: ":"), let name = HTTPField.Name(String(line[..<colon])) else {
                throw Malformed("not a field line: '\(line)'")
            }
            let value = line[line.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
            fields.append(HTTPField(name: name, value: String(value)))
        }
        return fields
    }
}

extension Array where Element == UInt8 {
    fileprivate func dropLast(_ count: Int) -> [UInt8] { Array(self[..<(self.count - count)]) }
}
