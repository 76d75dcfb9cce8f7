import Locks

/// Counts the entries that this process displaces, and tells the observers of each. Safe from any thread.
final class DisplacementLog: EnginePart {
    let context: EngineContext
    private let displaced = Atomic<UInt64>(0)

    init(context: EngineContext) { self.context = context }

    /// Entries that this process displaced since it opened the store.
    var count: UInt64 { displaced.load(ordering: .relaxed) }

    /// Tells of entries that a committed transaction has displaced.
    func report(_ victims: [Victim]) {
        guard !victims.isEmpty else { return }
        displaced.wrappingAdd(UInt64(victims.count), ordering: .relaxed)
        tally(victims)
        guard context.audience.isObserved else { return }
        for victim in victims {
            context.audience.tell(
                .displaced(
                    key: victim.entryKey, length: ByteCount(Int64(clamping: victim.record.length)),
                    reason: victim.reason))
        }
    }

    private func tally(_ victims: [Victim]) {
        let expired = victims.count { $0.reason == .expired }
        counters.add(.displacedExpired, UInt64(expired))
        counters.add(.displacedLeastRecentlyUsed, UInt64(victims.count - expired))
        logger(.displacement).debug(
            "displaced entries",
            metadata: ["expired": "\(expired)", "leastRecentlyUsed": "\(victims.count - expired)"])
    }

    /// Tells of entries of policy `memoryOnly` that made room for others.
    func report(evicted puts: [PendingPut]) {
        if puts.isEmpty { return }
        displaced.wrappingAdd(UInt64(puts.count), ordering: .relaxed)
        let now = clock.now()
        for put in puts {
            counters.add(put.expires <= now ? .evictedExpired : .evictedLeastRecentlyUsed)
            configuration.observer?(
                .displaced(
                    key: put.key, length: ByteCount(Int64(clamping: put.length)),
                    reason: put.expires <= now ? .expired : .leastRecentlyUsed))
        }
    }
}
