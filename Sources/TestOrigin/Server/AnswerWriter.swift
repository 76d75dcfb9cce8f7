import NIOCore

/// Writes an answer to a connection, byte by byte as scripted.
struct AnswerWriter {
    let channel: any Channel

    /// The content was cut, as scripted.
    private struct Cut: Error {}

    func write(_ answer: OriginAnswer, to request: OriginRequest) async throws {
        for interim in answer.interim {
            try await interim.gate?.wait()
            try await send(Self.head(interim.status, interim.reason, interim.fields, minorVersion: 1))
        }
        try await answer.gateBeforeHead?.wait()
        if let raw = answer.raw { return try await send(raw) }
        do {
            try await writeMessage(answer, request)
        } catch is Cut {}
        try await send(answer.garbage)
    }

    private func writeMessage(_ answer: OriginAnswer, _ request: OriginRequest) async throws {
        let hasContent =
            answer.forcesContent || (request.method != "HEAD" && answer.status != 204 && answer.status != 304)
        var fields = answer.fields
        switch answer.framing {
        case .length
        where !fields.contains { $0.name.lowercased() == "content-length" }
            && answer.status != 204 && answer.status != 304
            // Nothing was said about the content that GET would get.
            && !(request.method == "HEAD" && answer.pieces.isEmpty):
            fields.append(.init("Content-Length", String(answer.contentLength)))
        case .chunked:
            fields.append(.init("Transfer-Encoding", "chunked"))
        default:
            break
        }
        // With the first piece in one write: a client may get a whole answer in one packet.
        var held = Self.head(answer.status, answer.reason, fields, minorVersion: answer.minorVersion)
        guard hasContent else { return try await send(held) }
        var sent: Int64 = 0
        for piece in answer.pieces {
            switch piece {
            case .bytes(let bytes):
                try await writePiece(bytes, answer, &sent, &held)
            case .generated(let generated):
                for start in stride(from: 0, to: generated.count, by: GeneratedBytes.blockLength) {
                    let end = start + Int64(GeneratedBytes.blockLength)
                    try await writePiece(generated.bytes(in: start..<end), answer, &sent, &held)
                }
            case .gate(let gate):
                try await send(held)
                held = []
                try await gate.wait()
            }
        }
        if answer.framing == .chunked, answer.limit == nil {
            held += Array("0\r\n".utf8) + Self.lines(answer.trailers) + [13, 10]
        }
        try await send(held)
    }

    private func writePiece(
        _ bytes: [UInt8], _ answer: OriginAnswer, _ sent: inout Int64, _ held: inout [UInt8]
    ) async throws {
        let isChunked = answer.framing == .chunked
        let room = answer.limit.map { max(0, $0 - sent) } ?? .max
        if isChunked { held += Array("\(String(bytes.count, radix: 16))\r\n".utf8) }
        held += bytes.prefix(Int(min(room, Int64(bytes.count))))
        sent += min(room, Int64(bytes.count))
        let isCut = room < bytes.count
        if isChunked && !isCut { held += [13, 10] }
        try await send(held)
        held = []
        if isCut { throw Cut() }
    }

    private func send(_ bytes: [UInt8]) async throws {
        guard !bytes.isEmpty else { return }
        try await channel.writeAndFlush(channel.allocator.buffer(bytes: bytes)).get()
    }

    private static func head(
        _ status: Int, _ reason: String, _ fields: [OriginAnswer.Field], minorVersion: Int
    ) -> [UInt8] {
        Array("HTTP/1.\(minorVersion) \(status) \(reason)\r\n".utf8) + lines(fields) + [13, 10]
    }

    private static func lines(_ fields: [OriginAnswer.Field]) -> [UInt8] {
        fields.flatMap { Array("\($0.name): \($0.value)\r\n".utf8) }
    }
}
