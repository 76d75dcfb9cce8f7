import CLarder

/// Which instance looks after what an unclean shutdown of the machine left; see `Scrubber`.
struct ScrubClaim {
    private let words: SharedWords
    private let instance: UInt64

    init(_ ledger: Ledger) {
        words = ledger.words
        instance = ledger.instance
    }

    /// Makes this instance the one, unless another that lives is.
    func take(staging: Directory, isAlone: Bool) throws(LarderError) -> Bool {
        let word = words.address(.scrub)
        let owner = clarder_load(word)
        if owner == instance { return true }
        guard owner != 0 else { return clarder_claim(word, 0, instance) }
        guard let seized = try InstanceLock.seize(owner, staging: staging, missingIsDead: isAlone) else { return false }
        return withExtendedLifetime(seized) { clarder_claim(word, owner, instance) }
    }

    func release() { _ = clarder_claim(words.address(.scrub), instance, 0) }
}
