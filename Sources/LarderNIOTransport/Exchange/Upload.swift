import LarderHTTP

/// Sends the content of a request as its source gives it and the connection takes it.
struct Upload: Sendable {
    let body: RequestBody
    let exchange: Exchange

    func run() async {
        let connection = exchange.connection
        let pull = body.makePull()
        var sent: Int64 = 0
        while true {
            let piece: [UInt8]?
            do {
                piece = try await pull()
            } catch {
                // Cancelled from here, because no more is wanted.
                if Task.isCancelled { return }
                return connection.abort(exchange, failed("\(error)"))
            }
            guard let piece else { break }
            if piece.isEmpty { continue }
            sent += Int64(piece.count)
            if let length = body.length, sent > length {
                return connection.abort(exchange, failed("it has more than the \(length) bytes it was said to have"))
            }
            guard await connection.write(piece, exchange) else { return }
        }
        if let length = body.length, sent < length {
            return connection.abort(exchange, failed("it has \(sent) bytes, not \(length)"))
        }
        connection.endRequest(exchange)
    }

    private func failed(_ why: String) -> TransportError {
        TransportError(
            .requestBodyFailed, mayHaveBeenSeen: true,
            endpoint: "\(exchange.endpoint)", "the content of the request to \(exchange.endpoint) failed: \(why)")
    }
}
