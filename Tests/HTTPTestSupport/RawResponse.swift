/// An answer as it was on the wire.
public struct RawResponse: Sendable {
    /// The status line.
    public var statusLine: String
    /// The status code.
    public var status: Int
    /// The field lines in order.
    public var fields: [(name: String, value: String)]
    /// The content with the chunked coding taken off.
    public var body: [UInt8] = []
    /// The sizes of the chunks; nil for other framings.
    public var chunks: [Int]?
    /// The trailer lines of a chunked answer.
    public var trailers: [(name: String, value: String)] = []

    /// The content as text.
    public var text: String { String(decoding: body, as: UTF8.self) }

    /// The values of a field in order.
    public func values(_ name: String) -> [String] {
        fields.filter { $0.name.lowercased() == name.lowercased() }.map(\.value)
    }

    /// The values of a field joined by ", "; nil when there is none.
    public subscript(_ name: String) -> String? {
        let values = values(name)
        return values.isEmpty ? nil : values.joined(separator: ", ")
    }
}

extension RawClient {
    /// Sends a request and takes its final answer; interim ones are passed over.
    public func exchange(_ text: String) async throws -> RawResponse {
        try await send(text)
        var response: RawResponse
        repeat {
            response = try await self.response(to: String(text.prefix { $0 != " " }))
        } while response.status < 200
        return response
    }

    /// Takes an answer, interim ones included.
    /// - Parameter method: that of the request: an answer to HEAD has no content. Default: GET.
    public func response(to method: String = "GET") async throws -> RawResponse {
        var response = try await head()
        if method == "HEAD" || response.status < 200 || response.status == 204 || response.status == 304 {
            return response
        }
        if method == "CONNECT", response.status < 300 { return response }
        if response["Transfer-Encoding"] == "chunked" {
            try await takeChunks(&response)
        } else if let length = response["Content-Length"] {
            guard let length = Int(length) else { throw Malformed("Content-Length: \(length)") }
            response.body = try await bytes(length)
        } else {
            response.body = try await rest()
        }
        return response
    }

    /// Takes the head of an answer.
    public func head() async throws -> RawResponse {
        let statusLine = try await line()
        let words = statusLine.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
        guard words.count == 3, words[0].hasPrefix("HTTP/1."), words[1].count == 3, let status = Int(words[1]) else {
            throw Malformed("the status line '\(statusLine)'")
        }
        return RawResponse(statusLine: statusLine, status: status, fields: try await fieldLines())
    }

    private func takeChunks(_ response: inout RawResponse) async throws {
        var sizes: [Int] = []
        while true {
            let line = try await line()
            guard let size = Int(line, radix: 16) else { throw Malformed("the chunk size '\(line)'") }
            if size == 0 { break }
            sizes.append(size)
            response.body += try await bytes(size)
            guard try await self.line().isEmpty else { throw Malformed("bytes after a chunk") }
        }
        response.chunks = sizes
        response.trailers = try await fieldLines()
    }

    private func fieldLines() async throws -> [(name: String, value: String)] {
        var fields: [(name: String, value: String)] = []
        while case let line = try await line(), !line.isEmpty {
            guard let colon = line.firstIndex(of: ":") else { throw Malformed("the field line '\(line)'") }
            let value = line[line.index(after: colon)...].drop { $0 == " " }
            fields.append((String(line[..<colon]), String(value)))
        }
        return fields
    }
}

/// Sends one request on a connection of its own and takes its final answer.
public func exchange(_ port: Int, _ text: String) async throws -> RawResponse {
    let client = try await RawClient.connect(to: port)
    let response = try await client.exchange(text)
    try await client.close()
    return response
}
