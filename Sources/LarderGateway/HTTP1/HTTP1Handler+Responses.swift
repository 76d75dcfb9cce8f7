import HTTPTypes
import HTTPWire
import Larder
import LarderHTTP
import NIOCore

#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// Writing answers.
extension HTTP1Handler {
    /// Writes an answer of the gateway's own.
    func write(_ answer: OwnAnswer, _ context: ChannelHandlerContext) {
        if answer.closes { current?.closes = true }
        begin(answer.head(at: worker.core.time.wallSeconds()), length: Int64(answer.body.count))
        if current?.method != .head { content(answer.body, count: answer.body.count) }
        finish()
    }

    /// Writes an answer of the cache: all of it, if it is there, or its head.
    func write(_ response: FetchResponse, _ context: ChannelHandlerContext) {
        current?.record.source = response.source
        guard begin(response.head, length: response.body.length) else {
            current?.record.source = nil
            return write(OwnAnswer(502, "The origin's response cannot be passed on."), context)
        }
        guard hasContent(response.head.status.code) else { return finish() }
        guard case .segments(let segments) = response.body.source, isImmediate(segments) else {
            let delivery = self.delivery ?? Delivery(worker.eventLoop, to: self)
            self.delivery = delivery
            delivery.send(response.body)
            return
        }
        do {
            for segment in segments { try content(segment, context) }
            finish()
        } catch {
            worker.core.logger.error("cannot read a stored body", metadata: ["error": "\(error)"])
            fail(context)
        }
    }

    /// Writes the head of an answer whose content arrives. Returns whether it has any.
    func writeHead(_ response: FetchResponse, _ context: ChannelHandlerContext) -> Bool {
        current?.record.source = response.source
        guard begin(response.head, length: response.body.length) else {
            current?.record.source = nil
            write(OwnAnswer(502, "The origin's response cannot be passed on."), context)
            return false
        }
        guard hasContent(response.head.status.code) else {
            finish()
            return false
        }
        return true
    }

    /// RFC 9110 section 6.4.1.
    private func hasContent(_ status: Int) -> Bool {
        current?.method != .head && status >= 200 && status != 204 && status != 304
    }

    // MARK: Heads

    /// Writes the head of the final answer. Returns false, having written nothing, if it cannot be written.
    @discardableResult
    private func begin(_ head: HTTPResponse, length: Int64?) -> Bool {
        guard let current else { return false }
        let status = head.status.code
        var (closes, isChunked) = (current.closes, false)
        worker.scratch.removeAll(keepingCapacity: true)
        do throws(WireError) {
            try MessageWriter.appendStatusLine(head.status.withReason, to: &worker.scratch)
            var declared: HTTPField?
            for field in head.headerFields {
                switch field.name {
                case .contentLength: declared = field
                case .connection, .transferEncoding, .keepAlive: break
                default: try MessageWriter.append(field, to: &worker.scratch)
                }
            }
            if status == 204 || status < 200 {
                // RFC 9110 section 8.6: no Content-Length.
            } else if current.method == .head || status == 304 {
                // The length of what is not sent, if the origin said it.
                if let declared { try MessageWriter.append(declared, to: &worker.scratch) }
            } else if let length {
                worker.scratch += "Content-Length: \(length)\r\n".utf8
            } else if current.version == .http11 {
                worker.scratch += "Transfer-Encoding: chunked\r\n".utf8
                isChunked = true
            } else {
                closes = true
            }
        } catch {
            return false
        }
        if current.owesContinue, current.content != nil {
            // It is not told to go on, and may or may not send its content: where the next request starts is not certain.
            closes = true
        }
        if closes {
            worker.scratch += "Connection: close\r\n\r\n".utf8
        } else if current.version == .http10 {
            worker.scratch += "Connection: keep-alive\r\n\r\n".utf8
        } else {
            worker.scratch += "\r\n".utf8
        }
        worker.output.writeBytes(worker.scratch)
        current.closes = closes
        current.isChunked = isChunked
        current.hasBegun = true
        current.record.status = status
        return true
    }

    /// Writes an interim answer.
    func writeInformational(_ head: HTTPResponse, _ context: ChannelHandlerContext) {
        // 101 is between us and the origin, and 100 is sent when the content is wanted.
        guard let current, !current.hasBegun, head.status.code != 101, head.status.code != 100 else { return }
        worker.scratch.removeAll(keepingCapacity: true)
        do throws(WireError) {
            try MessageWriter.append(head, to: &worker.scratch)
        } catch {
            return
        }
        worker.output.writeBytes(worker.scratch)
        flush(context)
    }

    // MARK: Content

    /// What is read from a file at once, into one write with the head: up to here that is less work than sendfile(2).
    static let smallFile: Int64 = 64 << 10

    private func isImmediate(_ segments: [ResponseBody.Segment]) -> Bool {
        isPlaintext || segments.reduce(0) { $0 + $1.count } <= Self.smallFile
    }

    private func content(_ segment: ResponseBody.Segment, _ context: ChannelHandlerContext) throws {
        switch segment {
        case .bytes(let bytes): content(bytes, count: bytes.count)
        case .stored(let body, let range):
            current?.record.bytesSent += range.upperBound - range.lowerBound
            try content(of: body, range, context)
        }
    }

    /// Writes a range of a stored body: small ones into the same write as the head, large ones by sendfile(2).
    func content(of body: Body, _ range: Range<Int64>, _ context: ChannelHandlerContext) throws {
        if range.count > Self.smallFile, let descriptor = try body.withFileDescriptor({ try $0.duplicate() }) {
            append(to: context)
            let handle = NIOFileHandle(_deprecatedTakingOwnershipOfDescriptor: descriptor.rawValue)
            let region = FileRegion(
                fileHandle: handle, readerIndex: Int(range.lowerBound), endIndex: Int(range.upperBound))
            bytesQueued += Int64(region.readableBytes)
            worker.counters.bytesOut += UInt64(region.readableBytes)
            hasUnflushed = true
            bulkWrites += 1
            let write = context.write(wrapOutboundOut(.fileRegion(region)))
            track(write)
            write.assumeIsolated().whenComplete { _ in
                self.bulkWrites -= 1
                // Of a duplicate that was read from: closing cannot lose anything.
                try? handle.close()
            }
        } else if range.lowerBound == 0, range.upperBound == body.length.bytes {
            try body.withBytes { span in
                _ = span.withUnsafeBytes { worker.output.writeBytes($0) }
            }
        } else {
            worker.output.writeBytes(try body.bytes(in: range))
        }
    }

    /// Writes a body that is shared with other answers.
    func write(_ bytes: ByteBuffer, _ digest: Digest, _ context: ChannelHandlerContext) {
        append(to: context)
        let count = bytes.readableBytes
        worker.lend(digest, count)
        lentBytes += count
        bulkWrites += 1
        write(bytes, context).assumeIsolated().whenComplete { _ in
            self.bulkWrites -= 1
            self.lentBytes -= count
            self.worker.takeBack(digest, count)
        }
    }

    private func write(_ bytes: ByteBuffer, _ context: ChannelHandlerContext) -> EventLoopFuture<Void> {
        bytesQueued += Int64(bytes.readableBytes)
        worker.counters.bytesOut += UInt64(bytes.readableBytes)
        hasUnflushed = true
        let write = context.write(wrapOutboundOut(.byteBuffer(bytes)))
        track(write)
        return write
    }

    private func content(_ bytes: some Sequence<UInt8>, count: Int) {
        guard count > 0 else { return }
        current?.record.bytesSent += Int64(count)
        worker.output.writeBytes(bytes)
    }

    /// Writes a piece of content whose length need not be known.
    func writePiece(_ bytes: ArraySlice<UInt8>, _ context: ChannelHandlerContext) {
        guard !bytes.isEmpty else { return }
        let isChunked = current?.isChunked == true
        if isChunked {
            worker.scratch.removeAll(keepingCapacity: true)
            MessageWriter.appendChunkStart(count: bytes.count, to: &worker.scratch)
            worker.output.writeBytes(worker.scratch)
        }
        if bytes.count < Self.ownBuffer {
            content(bytes, count: bytes.count)
        } else {
            append(to: context)
            current?.record.bytesSent += Int64(bytes.count)
            _ = write(ByteBuffer(bytes: bytes), context)
        }
        if isChunked { worker.output.writeBytes(MessageWriter.chunkEnd) }
        append(to: context, isTracked: true)
    }

    /// From here on a piece has a buffer to itself: beside a head it would take one of twice the size.
    private static let ownBuffer = 8 << 10

    // MARK: Endings

    /// The answer is complete.
    func finish() {
        guard let current, !current.isAnswered else { return }
        if current.isChunked { worker.output.writeBytes(MessageWriter.lastChunk) }
        current.isAnswered = true
        // Content that is still coming is for nobody.
        current.inlet?.fail()
        current.inlet = nil
        answered(current.record)
    }

    /// The answer will not be complete: the client sees that by the connection's end. Where that is how a complete answer
    /// ends, too, it has to be a reset.
    func fail(_ context: ChannelHandlerContext) {
        guard let current, !current.isAnswered else { return }
        current.record.isIncomplete = true
        answered(current.record)
        current.inlet?.fail()
        self.current = nil
        if current.version == .http10, let socket = context.channel as? any SocketOptionProvider {
            phase = .lingering
            append(to: context)
            socket.setSoLinger(linger(l_onoff: 1, l_linger: 0)).assumeIsolated().whenComplete { _ in
                self.close(context)
            }
        } else {
            closeWhenWritten(context)
        }
    }

    /// Before anything is written. What another connection's handler may have left behind is for nobody: every way through a
    /// handler ends with ``append(to:)``, and should one not, then better no answer than another client's.
    func enter() {
        guard worker.output.readableBytes > 0 else { return }
        assertionFailure("an answer was not handed over")
        worker.output.clear()
    }

    /// Hands over what is held and makes it go out.
    func flush(_ context: ChannelHandlerContext) {
        guard worker.output.readableBytes > 0 || hasUnflushed else { return }
        append(to: context)
        hasUnflushed = false
        context.flush()
    }

    /// Hands over what is held.
    /// - Parameter isTracked: whether to hear when it has gone out.
    func append(to context: ChannelHandlerContext, isTracked: Bool = false) {
        let count = worker.output.readableBytes
        guard count > 0 else { return }
        let bytes = worker.takeOutput()
        if isTracked {
            _ = write(bytes, context)
            return
        }
        bytesQueued += Int64(count)
        worker.counters.bytesOut += UInt64(count)
        hasUnflushed = true
        context.write(wrapOutboundOut(.byteBuffer(bytes)), promise: nil)
    }
}
