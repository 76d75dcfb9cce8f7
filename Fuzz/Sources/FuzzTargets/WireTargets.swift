import HTTPTypes

@testable import HTTPWire

/// The head of a request. The first byte says where the bytes are cut.
@Sendable func fuzzRequests(_ input: [UInt8]) {
    guard let (head, _) = head(input, isRequest: true), let parsed = try? head.withBytes({ try RequestHead.parse($0) }),
        parsed.request.authority != nil
    else { return }
    var written: [UInt8] = []
    guard (try? MessageWriter.append(parsed.request, to: &written)) != nil,
        let again = try? written.withBytes({ try RequestHead.parse($0) })
    else { fatalError("a request that was read cannot be written") }
    require(again.request.method == parsed.request.method, "the method changes when it is written")
    require(again.request.authority == parsed.request.authority, "the authority changes when it is written")
    require(again.request.path == parsed.request.path, "the path changes when it is written")
    require(again.request.headerFields == parsed.request.headerFields, "the fields change when they are written")
    require(again.framing == parsed.framing || parsed.version == .http10, "the framing changes when it is written")
}

/// The head of a response. The first byte says where the bytes are cut, and what it answers.
@Sendable func fuzzResponses(_ input: [UInt8]) {
    guard let (head, choice) = head(input, isRequest: false) else { return }
    let method: HTTPRequest.Method = choice % 7 == 0 ? .head : choice % 5 == 0 ? .connect : .get
    guard let parsed = try? head.withBytes({ try ResponseHead.parse($0, answering: method) }) else { return }
    var written: [UInt8] = []
    guard (try? MessageWriter.append(parsed.response, to: &written)) != nil,
        let again = try? written.withBytes({ try ResponseHead.parse($0, answering: method) })
    else { fatalError("a response that was read cannot be written") }
    require(again.response == parsed.response, "a response changes when it is written")
    require(again.framing == parsed.framing || parsed.version == .http10, "the framing changes when it is written")
}

/// A chunked body. The first byte says where the bytes are cut.
@Sendable func fuzzChunks(_ input: [UInt8]) {
    guard let cut = input.first else { return }
    let body = Array(input.dropFirst())
    let whole = content([body])
    let parts = content([Array(body.prefix(Int(cut))), Array(body.dropFirst(Int(cut)))])
    require(whole.bytes == parts.bytes && whole.ended == parts.ended && whole.error == parts.error, "cuts are seen")
    require(whole.bytes.count < max(body.count, 1), "content comes out of nothing")
    if let bytes = body.isEmpty ? nil : Optional(body) {
        var written: [UInt8] = []
        MessageWriter.appendChunkStart(count: bytes.count, to: &written)
        written += bytes + MessageWriter.chunkEnd + MessageWriter.lastChunk
        require(content([written]).bytes == bytes, "a chunk changes when it is written")
    }
}

/// The head, found in one look and in two.
private func head(_ input: [UInt8], isRequest: Bool) -> (head: [UInt8], choice: UInt8)? {
    guard let cut = input.first else { return nil }
    let bytes = Array(input.dropFirst())
    let limits = HeadLimits(headBytes: 500, startLineBytes: 120, fields: 12)
    var whole = HeadScanner(limits: limits, isRequest: isRequest)
    var parts = HeadScanner(limits: limits, isRequest: isRequest)
    let expected = bytes.withBytes { raw in Result { () throws(WireError) in try whole.scan(raw) } }
    let found = bytes.withBytes { raw in
        Result { () throws(WireError) in
            let part = try parts.scan(UnsafeRawBufferPointer(rebasing: raw.prefix(Int(cut))))
            if let part { return Optional(part) }
            return try parts.scan(raw)
        }
    }
    require(found == expected, "cuts are seen")
    guard case .success(let range?) = found else { return nil }
    return (Array(bytes[range]), cut)
}

private func content(_ pieces: [[UInt8]]) -> (bytes: [UInt8], ended: Bool, error: WireError?) {
    var decoder = BodyDecoder(.chunked)
    var bytes: [UInt8] = []
    for piece in pieces {
        var position = 0
        do throws(WireError) {
            let ended = try piece.withBytes { (raw) throws(WireError) in
                while true {
                    switch try decoder.next(raw, at: &position) {
                    case .payload(let range): bytes += raw[range]
                    case .needsMore: return false
                    case .end: return true
                    }
                }
            }
            if ended { return (bytes, true, nil) }
        } catch {
            return (bytes, false, error)
        }
    }
    return (bytes, decoder.isCompleteAtEOF, nil)
}
