import HTTPTypes

/// Writes heads and chunks. Whatever could end a line early, or make two messages of one, is refused: a head that was
/// refused leaves the buffer as it was.
package enum MessageWriter {
    /// Writes a request line, `Host`, fields and the empty line.
    ///
    /// `Host` comes first (RFC 9110 section 7.2); fields of that name in the request are passed over. Fields that say
    /// where the message ends are the caller's to add.
    /// - Parameters:
    ///   - request: the path, `/` where it has none, is the target; the authority is `Host`. For CONNECT the authority
    ///     is the target.
    ///   - additional: fields written after those of the request.
    /// - Throws: ``WireError/unwritable``.
    package static func append(
        _ request: HTTPRequest, additional: HTTPFields = [:], to buffer: inout [UInt8]
    ) throws(WireError) {
        let start = buffer.count
        do throws(WireError) {
            let authority = Array((request.authority ?? "").utf8)
            let isAuthorityValid = authority.withUnsafeBytes { HostSyntax.isValid($0, 0..<$0.count) }
            var target = request.path ?? "/"
            if target.isEmpty { target = "/" }
            if request.method == .connect { target = request.authority ?? "" }
            guard isAuthorityValid, !target.isEmpty, target.utf8.allSatisfy(\.isTargetCharacter) else {
                throw .unwritable
            }
            buffer.append(contentsOf: request.method.rawValue.utf8)
            buffer.append(Byte.space)
            buffer.append(contentsOf: target.utf8)
            buffer.append(contentsOf: " HTTP/1.1\r\nHost: ".utf8)
            buffer.append(contentsOf: authority)
            buffer.append(contentsOf: crlf)
            for field in request.headerFields where field.name.canonicalName != "host" {
                try append(field, to: &buffer)
            }
            for field in additional { try append(field, to: &buffer) }
            buffer.append(contentsOf: crlf)
        } catch {
            buffer.removeLast(buffer.count - start)
            throw error
        }
    }

    /// Writes a status line, fields and the empty line.
    /// - Parameters:
    ///   - response: fields that say where the message ends are the caller's.
    /// - Throws: ``WireError/unwritable``.
    package static func append(_ response: HTTPResponse, to buffer: inout [UInt8]) throws(WireError) {
        let start = buffer.count
        do throws(WireError) {
            try appendStatusLine(response.status, to: &buffer)
            for field in response.headerFields { try append(field, to: &buffer) }
            buffer.append(contentsOf: crlf)
        } catch {
            buffer.removeLast(buffer.count - start)
            throw error
        }
    }

    /// Writes a status line.
    package static func appendStatusLine(_ status: HTTPResponse.Status, to buffer: inout [UInt8]) throws(WireError) {
        let code = status.code
        guard (100...999).contains(code) else { throw .unwritable }
        buffer.append(contentsOf: "HTTP/1.1 ".utf8)
        for divisor in [100, 10, 1] { buffer.append(UInt8(code / divisor % 10) + 0x30) }
        buffer.append(Byte.space)
        for scalar in status.reasonPhrase.unicodeScalars {
            // A reason is for people, and not worth failing for.
            let byte = UInt8(exactly: scalar.value) ?? Byte.space
            buffer.append(byte.isControl ? Byte.space : byte)
        }
        buffer.append(contentsOf: crlf)
    }

    /// Writes the fields of a head but for those that say where the message ends, and of the connection.
    /// - Returns: the value of `Content-Length`, if the head has one.
    package static func appendFields(of head: HeadForm, to buffer: inout [UInt8]) throws(WireError) -> [UInt8]? {
        var length: [UInt8]?
        try head.forEachField { (name, value) throws(WireError) in
            // Few names have these lengths.
            switch name.count {
            case 10 where name.spells("connection") || name.spells("keep-alive"): break
            case 14 where name.spells("content-length"): length = Array(value)
            case 17 where name.spells("transfer-encoding"): break
            default: try appendField(name: name, value: value, to: &buffer)
            }
        }
        return length
    }

    /// Writes a field line, the value byte for byte.
    package static func append(_ field: HTTPField, to buffer: inout [UInt8]) throws(WireError) {
        try field.withBytes { (name, value) throws(WireError) in
            try appendField(name: name, value: value, to: &buffer)
        }
    }

    /// Writes a field line.
    package static func appendField(
        name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer, to buffer: inout [UInt8]
    ) throws(WireError) {
        var control = value.firstControl(from: 0)
        while control < value.count, value[control] == Byte.tab { control = value.firstControl(from: control + 1) }
        guard control == value.count else { throw .unwritable }
        guard !name.isEmpty, name.allSatisfy(\.isTokenCharacter) else { throw .unwritable }
        buffer.append(contentsOf: name)
        buffer.append(Byte.colon)
        buffer.append(Byte.space)
        buffer.append(contentsOf: value)
        buffer.append(Byte.carriageReturn)
        buffer.append(Byte.lineFeed)
    }

    // MARK: Chunks

    /// What comes before the data of a chunk of `count` bytes. At least 1: an empty chunk would end the message.
    package static func appendChunkStart(count: Int, to buffer: inout [UInt8]) {
        buffer.append(contentsOf: String(count, radix: 16).utf8)
        buffer.append(contentsOf: crlf)
    }

    /// What comes after the data of a chunk.
    package static let chunkEnd: [UInt8] = [0x0D, 0x0A]

    /// The last chunk, with no trailer fields.
    package static let lastChunk: [UInt8] = [0x30, 0x0D, 0x0A, 0x0D, 0x0A]

    private static let crlf: [UInt8] = [0x0D, 0x0A]
}
