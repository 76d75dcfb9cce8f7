import HTTPTypes
import NIOCore

/// What each frame of the client does (RFC 9113 section 6).
extension HTTP2Connection {
    /// - Throws: what is against the protocol.
    func receive(_ frame: HTTP2Frame) throws(HTTP2Fault) {
        // Section 3.4: the client's settings come first. Section 4.3: nothing comes between the parts of a head.
        guard hasSettings || (frame.kind == .settings && !frame.isAcknowledgement),
            heads.openStream == nil || frame.kind == .continuation
        else { throw .connection(.protocolError) }
        switch frame.kind {
        case .data: try receiveData(frame)
        case .headers: try receiveHeaders(frame)
        case .priority: try receivePriority(frame)
        case .reset: try receiveReset(frame)
        case .settings: try receiveSettings(frame)
        case .ping: try receivePing(frame)
        case .goAway: try receiveGoAway(frame)
        case .windowUpdate: try receiveWindowUpdate(frame)
        case .continuation: try receiveContinuation(frame)
        case .pushPromise: throw .connection(.protocolError)
        case nil: break
        }
    }

    // MARK: Requests

    private func receiveHeaders(_ frame: HTTP2Frame) throws(HTTP2Fault) {
        // Section 5.1.1: those of clients are odd.
        guard frame.stream % 2 == 1 else { throw .connection(.protocolError) }
        if let head = try heads.begin(frame) { try receive(head) }
    }

    private func receiveContinuation(_ frame: HTTP2Frame) throws(HTTP2Fault) {
        if let head = try heads.resume(frame) { try receive(head) }
    }

    /// A field block is complete.
    private func receive(_ head: HTTP2Head) throws(HTTP2Fault) {
        if let stream = streams[head.stream] { return try receiveTrailers(head, stream) }
        guard head.stream > lastStream else {
            if resetStreams.contains(head.stream) { return }
            throw .connection(endedStreams.contains(head.stream) ? .streamClosed : .protocolError)
        }
        if ignoresNewStreams { return }
        lastStream = head.stream
        guard !head.dependsOnItself else { throw .stream(head.stream, .protocolError) }
        guard streams.count < worker.core.configuration.limits.streams else {
            throw .stream(head.stream, .refusedStream)
        }
        if head.endsStream, !isLeaving {
            switch plainHits.write(head, client: client) {
            case .complete: return answered(head.stream)
            case .begun(let answer): return begin(head.stream).resume(answer)
            case .relayed(let relay, let record): return begin(head.stream).relay(relay, record, otherwise: head.fields)
            case .none: break
            }
        }
        guard let request = HTTPRequest(head.fields) else {
            worker.counters.malformedRequests += 1
            throw .stream(head.stream, .protocolError)
        }
        let stream = begin(head.stream)
        try stream.receive(request, endsStream: head.endsStream)
        if !head.endsStream { undecided.append(stream) }
    }

    /// Trailers end the request (section 8.1), and stay here.
    private func receiveTrailers(_ head: HTTP2Head, _ stream: HTTP2Stream) throws(HTTP2Fault) {
        guard !stream.isComplete else { throw .stream(stream.id, .streamClosed) }
        let areValid = head.fields.allSatisfy { HTTP2Field.field($0.name, $0.value) != nil }
        guard head.endsStream, areValid, !head.dependsOnItself else { throw .stream(stream.id, .protocolError) }
        try stream.end()
    }

    private func receiveData(_ received: HTTP2Frame) throws(HTTP2Fault) {
        guard received.stream != 0 else { throw .connection(.protocolError) }
        // Padding takes a part of the window, too (section 6.1).
        let count = received.payload.readableBytes
        guard intake.take(count) else { throw .connection(.flowControlError) }
        let given = intake.giveBack()
        if given > 0 { output.write { $0.writeWindowUpdate(stream: 0, by: given) } }
        var frame = received
        try frame.removePadding()
        guard let stream = streams[frame.stream] else { return try receiveLate(frame) }
        try stream.receive(frame.payload, count: count, endsStream: frame.endsStream)
    }

    /// DATA of a stream that is not open.
    private func receiveLate(_ frame: HTTP2Frame) throws(HTTP2Fault) {
        if resetStreams.contains(frame.stream) || isIgnored(frame.stream) { return }
        throw .connection(isIdle(frame.stream) ? .protocolError : .streamClosed)
    }

    /// Whether the client opened a stream before it knew that no more are taken.
    private func isIgnored(_ stream: Int) -> Bool { ignoresNewStreams && stream > lastStream && stream % 2 == 1 }

    /// Whether a stream has not begun.
    private func isIdle(_ stream: Int) -> Bool { stream > lastStream || stream % 2 == 0 }

    private func receiveReset(_ frame: HTTP2Frame) throws(HTTP2Fault) {
        guard !isIdle(frame.stream) || isIgnored(frame.stream) else { throw .connection(.protocolError) }
        guard frame.payload.readableBytes == 4 else { throw .connection(.frameSizeError) }
        countReset()
        if let stream = streams[frame.stream] { end(stream) }
    }

    /// Priorities are taken and not used (section 5.3.2).
    private func receivePriority(_ frame: HTTP2Frame) throws(HTTP2Fault) {
        guard frame.stream != 0 else { throw .connection(.protocolError) }
        let parent = frame.payload.getInteger(at: frame.payload.readerIndex, as: UInt32.self)
        guard let parent, frame.payload.readableBytes == 5 else { throw fault(of: frame, .frameSizeError) }
        if Int(parent & 0x7FFF_FFFF) == frame.stream { throw fault(of: frame, .protocolError) }
    }

    /// A stream that is not open cannot be reset.
    private func fault(of frame: HTTP2Frame, _ code: HTTP2Code) -> HTTP2Fault {
        streams[frame.stream] == nil ? .connection(code) : .stream(frame.stream, code)
    }

    // MARK: The connection

    private func receiveSettings(_ frame: HTTP2Frame) throws(HTTP2Fault) {
        guard frame.stream == 0 else { throw .connection(.protocolError) }
        if frame.isAcknowledgement {
            guard frame.payload.readableBytes == 0 else { throw .connection(.frameSizeError) }
            return
        }
        guard frame.payload.readableBytes % 6 == 0 else { throw .connection(.frameSizeError) }
        hasSettings = true
        var payload = frame.payload
        while let (identifier, value) = payload.readMultipleIntegers(as: (UInt16, UInt32).self) {
            try receiveSetting(identifier, value)
        }
        output.write { $0.writeSettingsAcknowledgement() }
    }

    /// Section 6.5.2.
    private func receiveSetting(_ identifier: UInt16, _ value: UInt32) throws(HTTP2Fault) {
        switch identifier {
        case 1: output.owesTableSize = true
        case 2: if value > 1 { throw .connection(.protocolError) }
        case 4: try output.windows.setInitial(Int64(value), balances: streams.values.lazy.map(\.output.balance))
        case 5: if !(16_384...16_777_215 ~= value) { throw .connection(.protocolError) }
        default: break
        }
    }

    private func receivePing(_ frame: HTTP2Frame) throws(HTTP2Fault) {
        guard frame.stream == 0 else { throw .connection(.protocolError) }
        guard frame.payload.readableBytes == 8 else { throw .connection(.frameSizeError) }
        if !frame.isAcknowledgement { output.write { $0.writePingAcknowledgement(frame.payload) } }
    }

    /// The client opens no more streams; those that are open end as they would.
    private func receiveGoAway(_ frame: HTTP2Frame) throws(HTTP2Fault) {
        guard frame.stream == 0 else { throw .connection(.protocolError) }
        guard frame.payload.readableBytes >= 8 else { throw .connection(.frameSizeError) }
    }

    private func receiveWindowUpdate(_ frame: HTTP2Frame) throws(HTTP2Fault) {
        guard let number = frame.payload.getInteger(at: frame.payload.readerIndex, as: UInt32.self),
            frame.payload.readableBytes == 4
        else { throw .connection(.frameSizeError) }
        let count = Int64(number & 0x7FFF_FFFF)
        if frame.stream == 0 {
            guard count > 0 else { throw .connection(.protocolError) }
            return try output.windows.growConnection(by: count)
        }
        guard !isIdle(frame.stream) || isIgnored(frame.stream) else { throw .connection(.protocolError) }
        guard let stream = streams[frame.stream] else { return }
        guard count > 0 else { throw .stream(stream.id, .protocolError) }
        try output.windows.grow(&stream.output.balance, by: count, stream: stream.id)
    }
}
