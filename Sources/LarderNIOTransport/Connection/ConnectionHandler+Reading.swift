import HTTPTypes
import HTTPWire
import LarderHTTP
import NIOCore

extension ConnectionHandler {
    /// Content that is read ahead of who takes it.
    private static let readAheadBytes = 64 << 10

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var buffer = unwrapInboundIn(data)
        guard let exchange else {
            // It was not asked for.
            return close()
        }
        if input.readableBytes == 0 { input = buffer } else { input.writeBuffer(&buffer) }
        let isContent = exchange.decoder != nil
        process()
        // Each piece of content starts the limit again; of a head, only the whole.
        if isContent { setTimeLimit() }
    }

    func channelReadComplete(context: ChannelHandlerContext) { readOn() }

    /// Asks for more where there is use for it. An idle connection reads to hear of its end.
    func readOn() {
        guard !isClosed else { return }
        if let exchange {
            let wants =
                exchange.decoder == nil ? exchange.headWaiter != nil : exchange.waitingBytes < Self.readAheadBytes
            guard wants else { return }
        }
        context?.read()
    }

    func isCurrent(_ exchange: Exchange) -> Bool { self.exchange === exchange }

    /// Reads what has arrived, and gives it to the task that waits.
    func process() {
        guard let exchange else { return }
        do throws(WireError) {
            if exchange.decoder == nil { try readHead(exchange) }
            if exchange.decoder != nil { try readContent(exchange) }
        } catch {
            return fail(exchange, .malformed(endpoint, error))
        }
        if isClosed { endOfInput(exchange) }
        exchange.deliver()
    }

    /// Reads one head, if it is there and wanted.
    private func readHead(_ exchange: Exchange) throws(WireError) {
        guard exchange.headWaiter != nil, exchange.interim == nil else { return }
        let method = exchange.message.method
        let limits = limits
        let found = input.withUnsafeReadableBytes { raw in
            Result { () throws(WireError) -> (ResponseHead, Int)? in
                guard let range = try scanner.scan(raw) else { return nil }
                let bytes = UnsafeRawBufferPointer(rebasing: raw[range])
                return (try ResponseHead.parse(bytes, answering: method, limits: limits), range.upperBound)
            }
        }
        guard let (head, count) = try found.get() else { return }
        input.moveReaderIndex(forwardBy: count)
        scanner.reset()
        let code = head.response.status.code
        guard (100..<200).contains(code) else {
            let length: Int64? =
                switch head.framing {
                case .none: 0
                case .length(let length): length
                case .chunked, .untilClose, .tunnel: nil
                }
            exchange.head = (head.response, length)
            exchange.decoder = BodyDecoder(head.framing)
            exchange.persists = head.persists
            // The rest of the request will not be read.
            exchange.upload?.cancel()
            return timer.set(nil)
        }
        exchange.interimCount += 1
        guard code != 101, exchange.interimCount <= Exchange.maximumInterim else {
            let what =
                code == 101 ? "changed to a protocol that was not asked for" : "sent interim responses without end"
            return fail(
                exchange,
                TransportError(
                    .malformedResponse, mayHaveBeenSeen: true, endpoint: "\(endpoint)", "\(endpoint) \(what)"))
        }
        exchange.interim = head.response
        timer.set(nil)
    }

    private func readContent(_ exchange: Exchange) throws(WireError) {
        guard var decoder = exchange.decoder else { return }
        var position = 0
        let result = input.withUnsafeReadableBytes { raw in
            Result { () throws(WireError) -> Bool in
                while true {
                    switch try decoder.next(raw, at: &position) {
                    case .payload(let range): exchange.append(raw[range])
                    case .needsMore: return false
                    case .end: return true
                    }
                }
            }
        }
        exchange.decoder = decoder
        input.moveReaderIndex(forwardBy: position)
        // The room is not kept while nothing is read.
        if input.readableBytes == 0 { input = ByteBuffer() }
        if try result.get() { finish(exchange) }
    }

    /// The connection has ended; what that means for the response (RFC 9112 section 8).
    private func endOfInput(_ exchange: Exchange) {
        guard self.exchange === exchange else { return }
        let why = fault.map { ": \(TransportError.describe($0))" } ?? ""
        guard let decoder = exchange.decoder else {
            // A head may be waiting behind an interim one.
            if exchange.headWaiter == nil || exchange.interim != nil { return }
            let isUnanswered = input.readableBytes == 0
            return fail(
                exchange,
                TransportError(
                    isUnanswered ? .closed : .incompleteResponse, mayHaveBeenSeen: true,
                    lostKeptConnection: exchange.isKept && isUnanswered && exchange.interimCount == 0,
                    endpoint: "\(endpoint)", "\(endpoint) closed the connection before it answered\(why)"))
        }
        // A reset, or TLS without its closure alert, may have cut off what the end of the connection ends (section
        // 9.8).
        if decoder.isCompleteAtEOF, fault == nil { return finish(exchange) }
        fail(
            exchange,
            TransportError(
                .incompleteResponse, mayHaveBeenSeen: true, endpoint: "\(endpoint)",
                "\(endpoint) closed the connection within the content\(why)"
            ))
    }
}
