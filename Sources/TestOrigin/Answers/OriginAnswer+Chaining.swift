extension OriginAnswer {
    private func with(_ change: (inout OriginAnswer) -> Void) -> OriginAnswer {
        var copy = self
        change(&copy)
        return copy
    }

    /// Adds a field line; earlier ones of the same name stay.
    /// - Parameters:
    ///   - name: as it is sent, in this case.
    ///   - value: without line breaks.
    /// - Returns: a copy with the line.
    public func header(_ name: String, _ value: String) -> OriginAnswer {
        with { $0.fields.append(Field(name, value)) }
    }

    /// Replaces the content.
    /// - Parameter bytes: the content; empty for none.
    /// - Returns: a copy with this content.
    public func content(_ bytes: [UInt8]) -> OriginAnswer { with { $0.pieces = bytes.isEmpty ? [] : [.bytes(bytes)] } }

    /// Adds a piece of content, which is sent separately, and as a separate chunk.
    /// - Parameter text: sent as UTF-8.
    /// - Returns: a copy with the piece.
    public func then(_ text: String) -> OriginAnswer { with { $0.pieces.append(.bytes(Array(text.utf8))) } }

    /// Adds a piece of generated content.
    /// - Parameter bytes: made while they are sent, so that they take no memory.
    /// - Returns: a copy with the piece.
    public func then(_ bytes: GeneratedBytes) -> OriginAnswer { with { $0.pieces.append(.generated(bytes)) } }

    /// Holds between the pieces before and after this call until the gate is open.
    /// - Parameter gate: opened by the test.
    /// - Returns: a copy that waits there.
    public func then(_ gate: Gate) -> OriginAnswer { with { $0.pieces.append(.gate(gate)) } }

    /// Holds before the head until the gate is open.
    /// - Parameter gate: opened by the test.
    /// - Returns: a copy that waits there.
    public func holding(at gate: Gate) -> OriginAnswer { with { $0.gateBeforeHead = gate } }

    /// Sends an interim (1xx) answer before the head, after those that were added earlier.
    /// - Parameters:
    ///   - status: 100 to 199.
    ///   - fields: of the interim answer. Default: none.
    ///   - gate: holds before this interim answer. Default: nil.
    public func interim(_ status: Int, _ fields: [Field] = [], holdingAt gate: Gate? = nil) -> OriginAnswer {
        with {
            $0.interim.append(
                Interim(status: status, reason: Self.usualReason(status), fields: fields, gate: gate))
        }
    }

    /// Uses the chunked coding: a chunk for each piece.
    /// - Parameter trailers: fields after the last chunk. Default: none.
    /// - Returns: a copy with that framing (RFC 9112 section 7.1).
    public func chunked(trailers: [Field] = []) -> OriginAnswer {
        with {
            $0.framing = .chunked
            $0.trailers = trailers
        }
    }

    /// Marks the end of the content by closing the connection.
    public func untilClose() -> OriginAnswer {
        with {
            $0.framing = .untilClose
            $0.ending = .close
        }
    }

    /// Declares a length that differs from that of the content.
    /// - Parameter length: the value of `Content-Length`, in bytes.
    /// - Returns: a copy with that field.
    public func declaringLength(_ length: Int64) -> OriginAnswer { header("Content-Length", String(length)) }

    /// Stops after this many bytes of content. Default: the connection is closed then.
    /// - Parameters:
    ///   - bytes: the number of bytes of content to send.
    ///   - ending: the ending after them. Default: the connection is closed.
    /// - Returns: a copy that ends there.
    public func truncated(after bytes: Int64, then ending: Ending = .close) -> OriginAnswer {
        with {
            $0.limit = bytes
            $0.ending = ending
        }
    }

    /// Sends bytes after the end of the answer that the framing declares.
    /// - Parameter text: sent as UTF-8.
    /// - Returns: a copy with the bytes.
    public func garbage(_ text: String) -> OriginAnswer { with { $0.garbage = Array(text.utf8) } }

    /// Sends the content even if a response has none: to HEAD, with 204, with 304.
    public func forcingContent() -> OriginAnswer { with { $0.forcesContent = true } }

    /// Closes the connection after the answer, and announces that in the head.
    public func closing() -> OriginAnswer { header("Connection", "close").with { $0.ending = .close } }

    /// Sets the ending.
    /// - Parameter ending: the state of the connection after the answer.
    /// - Returns: a copy with that ending.
    public func ending(_ ending: Ending) -> OriginAnswer { with { $0.ending = ending } }

    /// Sets the minor version in the status line.
    /// - Parameter minor: 0 for `HTTP/1.0`, 1 for `HTTP/1.1`.
    /// - Returns: a copy with that version.
    public func version(minor: Int) -> OriginAnswer { with { $0.minorVersion = minor } }
}
