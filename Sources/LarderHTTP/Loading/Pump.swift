import Larder

/// Moves a body from the transport to those who read it and to the store.
struct Pump {
    let url: String
    let body: TransportBody
    let spool: Spool
    let storing: Storing?
    /// What other processes wait for the end of. A body that is too long for that, and that they cannot read as it
    /// arrives, ends it.
    let claim: KeyClaim?

    /// Moves it to its end, proper or not.
    /// - Returns: whether the response is stored in parts that are the whole now.
    func run() async -> Bool {
        var received: Int64 = 0
        var isLastShown = true
        var claim = claim
        func releaseIfLong(_ length: Int64) {
            guard length > Loader.longestAwaited, storing?.isShown != true else { return }
            claim?.releaseSoon()
            claim = nil
        }
        releaseIfLong(body.length ?? 0)
        do throws(TransportError) {
            while let piece = try await body.next() {
                received += Int64(piece.count)
                releaseIfLong(received)
                // The last byte is shown when the store has the response: a client that has all of it may ask again at
                // once.
                isLastShown = !(storing != nil && body.length.map { received >= $0 } ?? false)
                await spool.append(piece, isShown: isLastShown)
                if spool.isAbandoned || Task.isCancelled {
                    throw TransportError(.cancelled, mayHaveBeenSeen: true, "the last reader has left")
                }
            }
            let isWhole = await end(received, isComplete: true)
            spool.finish(.success(()))
            return isWhole
        } catch {
            let isWhole = await end(received, isComplete: false)
            spool.finish(.failure(FetchError(error, url)))
            return isWhole
        }
    }

    private func end(_ received: Int64, isComplete: Bool) async -> Bool {
        guard let storing else { return false }
        guard spool.isStoring else {
            await storing.cancel(spool.storingFailure)
            return false
        }
        return await carryThrough { await storing.finish(receivedBytes: received, isComplete: isComplete) }
    }
}
