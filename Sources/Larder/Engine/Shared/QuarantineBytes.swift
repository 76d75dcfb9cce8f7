import CLarder

/// Bytes that lie in `quarantine/`, which belong to no open store: the word of the ledger's first slot.
struct QuarantineBytes {
    private let ledger: Ledger

    init(_ ledger: Ledger) { self.ledger = ledger }

    private var word: UnsafeMutablePointer<UInt64> { ledger.bytes(0) }

    var count: Int64 { max(0, Int64(bitPattern: clarder_load(word))) }

    func add(_ bytes: Int64) { _ = clarder_add(word, bytes) }

    /// Sets the count to `new`, unless it is no longer `old`.
    func correct(from old: Int64, to new: Int64) {
        _ = clarder_claim(word, UInt64(bitPattern: old), UInt64(bitPattern: new))
    }
}
