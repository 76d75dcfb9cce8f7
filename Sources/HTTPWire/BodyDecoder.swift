/// Finds the content of a message in its bytes as they arrive. Keeps no bytes.
package struct BodyDecoder: Sendable {
    /// What the next bytes are.
    package enum Event: Hashable, Sendable {
        /// Content: this range, one byte or more.
        case payload(Range<Int>)
        /// Nothing more in these bytes, all of which were read.
        case needsMore
        /// The message is over. Bytes from the position on are not part of it.
        case end
    }

    private enum State {
        case length(Int64)
        case chunked(ChunkDecoder)
        case untilClose
        case failed(WireError)
    }

    private var state: State

    /// - Parameter framing: as the head says. A tunnel is read like a message that the end of the connection ends.
    package init(_ framing: BodyFraming) {
        switch framing {
        case .none: state = .length(0)
        case .length(let length): state = .length(max(length, 0))
        case .chunked: state = .chunked(ChunkDecoder())
        case .untilClose, .tunnel: state = .untilClose
        }
    }

    /// Reads on.
    /// - Parameters:
    ///   - bytes: what has arrived. Content may be cut anywhere.
    ///   - position: the first byte that was not read; moved on.
    /// - Throws: what is wrong with the message, from then on always.
    package mutating func next(_ bytes: UnsafeRawBufferPointer, at position: inout Int) throws(WireError) -> Event {
        switch state {
        case .length(let left):
            if left == 0 { return .end }
            let count = min(Int64(bytes.count - position), left)
            if count <= 0 { return .needsMore }
            state = .length(left - count)
            defer { position += Int(count) }
            return .payload(position..<position + Int(count))
        case .untilClose:
            if position >= bytes.count { return .needsMore }
            defer { position = bytes.count }
            return .payload(position..<bytes.count)
        case .chunked(var decoder):
            do {
                let event = try decoder.next(bytes, at: &position)
                state = .chunked(decoder)
                return event
            } catch {
                state = .failed(error)
                throw error
            }
        case .failed(let error): throw error
        }
    }

    /// Whether the message is complete if the connection ends here (RFC 9112 section 8).
    package var isCompleteAtEOF: Bool {
        switch state {
        case .length(let left): left == 0
        case .chunked(let decoder): decoder.isAtEnd
        case .untilClose: true
        case .failed: false
        }
    }

    /// Bytes of content still to come; nil where the framing does not say.
    package var remaining: Int64? {
        if case .length(let left) = state { left } else { nil }
    }
}
