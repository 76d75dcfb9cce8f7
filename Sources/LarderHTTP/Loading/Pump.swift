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
    let clock: any StoreClock

    /// Moves it to its end, proper or not.
    /// - Returns: whether the response is stored in parts that are the whole now.
    func run() async -> Bool {
        var received: Int64 = 0
        var isLastShown = true
        var others = Others(claim, since: clock.uptime())
        await others.look(self, received)
        do throws(TransportError) {
            while let piece = try await body.next() {
                received += Int64(piece.count)
                // The last byte is shown when the store has the response: a client that has all of it may ask again at
                // once.
                isLastShown = !(storing != nil && body.length.map { received >= $0 } ?? false)
                await spool.append(piece, isShown: isLastShown)
                await others.look(self, received)
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

    /// What other processes know of the body.
    private struct Others {
        private var claim: KeyClaim?
        private let began: UInt64
        private var mayFollow = true

        init(_ claim: KeyClaim?, since began: UInt64) {
            self.claim = claim
            self.began = began
        }

        /// Shows them a body that is long or slow, or lets them ask for it themselves.
        mutating func look(_ pump: Pump, _ received: Int64) async {
            guard let claim, pump.storing?.isShown != true, received != pump.body.length else { return }
            let isLong = max(received, pump.body.length ?? 0) > Loader.longestAwaited
            guard isLong || received > 0 && pump.clock.uptime() &- began > Loader.longestHidden else { return }
            if mayFollow, await pump.spool.writeOut() {
                if await pump.storing?.show(received) == true { return }
                mayFollow = false
            }
            if isLong {
                claim.releaseSoon()
                self.claim = nil
            }
        }
    }

    private func end(_ received: Int64, isComplete: Bool) async -> Bool {
        guard let storing else { return false }
        guard await spool.writeOut() else {
            await storing.cancel(spool.storingFailure)
            return false
        }
        return await carryThrough { await storing.finish(receivedBytes: received, isComplete: isComplete) }
    }
}
