import HTTPTypes
import LarderHTTP
import NIOCore

/// Answers that come later.
extension HTTP1Handler: DeliverySink {
    var takesMore: Bool { rest.isEmpty && context?.channel.isWritable ?? false }

    func deliver(informational head: HTTPResponse) {
        guard let context else { return }
        enter()
        writeInformational(head, context)
    }

    func deliver(_ result: Result<FetchResponse, FetchError>) -> Bool {
        guard let context, current != nil else { return false }
        enter()
        defer { settle(context) }
        switch result {
        case .failure(let error):
            if error.transport != nil { worker.counters.upstreamErrors += 1 }
            write(GatewayCore.answer(to: error), context)
            return false
        case .success(let response):
            if response.originError != nil { worker.counters.upstreamErrors += 1 }
            guard case .live = response.body.source else {
                write(response, context)
                return false
            }
            return writeHead(response, context)
        }
    }

    func deliver(piece: [UInt8]) {
        guard let context, current != nil else { return }
        enter()
        rest = piece[...]
        writeRest(context)
        countMemory(context)
    }

    /// Writes of a piece what the channel takes: what waits for a slow client should be in one place only.
    func writeRest(_ context: ChannelHandlerContext) {
        guard !rest.isEmpty else { return }
        while !rest.isEmpty, context.channel.isWritable {
            let part = rest.prefix(Self.writeBytes)
            rest = rest.dropFirst(part.count)
            writePiece(part, context)
            flush(context)
        }
        // An empty slice holds on to the piece.
        if rest.isEmpty { rest = [] }
        if heldBytes > 0 { countMemory(context) }
    }

    private static let writeBytes = 32 << 10

    func deliverEnd() {
        guard let context else { return }
        enter()
        finish()
        settle(context)
    }

    func deliverFailure(_ error: any Error) {
        guard let context else { return }
        if error is FetchError { worker.counters.upstreamErrors += 1 }
        fail(context)
    }

    /// Goes on with what waited for the answer.
    private func settle(_ context: ChannelHandlerContext) {
        advance(context)
        flush(context)
        resumeReading(context)
    }

    /// Removing stored responses may wait for the disk: it is done elsewhere.
    func purge(_ order: PurgeOrder) {
        let delivery = Delivery(worker.eventLoop, to: self)
        self.delivery = delivery
        let core = worker.core
        let handler = NIOLoopBound(self, eventLoop: worker.eventLoop)
        delivery.perform({ await core.perform(order) }) { answer in
            guard let context = handler.value.context, handler.value.current != nil else { return }
            handler.value.enter()
            handler.value.write(answer, context)
            handler.value.settle(context)
        }
    }
}
