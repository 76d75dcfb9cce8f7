/// Moves a body from the transport to those who read it and to the store.
struct Pump {
    let url: String
    let body: TransportBody
    let spool: Spool
    let storing: Storing?

    func run() async {
        var received: Int64 = 0
        var isLastShown = true
        do throws(TransportError) {
            while let piece = try await body.next() {
                received += Int64(piece.count)
                // The last byte is shown when the store has the response: a client that has all of it may ask again at
                // once.
                isLastShown = !(storing != nil && body.length.map { received >= $0 } ?? false)
                await spool.append(piece, isShown: isLastShown)
                if spool.isAbandoned || Task.isCancelled {
                    throw TransportError(.cancelled, mayHaveBeenSeen: true, "the last reader has left")
                }
            }
            await end(received, isComplete: true)
            spool.finish(.success(()))
            if let storing { await carryThrough { await storing.combine() } }
        } catch {
            await end(received, isComplete: false)
            spool.finish(.failure(FetchError(error, url)))
        }
    }

    private func end(_ received: Int64, isComplete: Bool) async {
        guard let storing else { return }
        if spool.isStoring {
            await carryThrough { await storing.finish(receivedBytes: received, isComplete: isComplete) }
        } else {
            await storing.cancel(spool.storingFailure)
        }
    }
}
