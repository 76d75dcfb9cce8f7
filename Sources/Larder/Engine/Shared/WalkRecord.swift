import CLarder

/// Walks over the pages of the index behind a store that is open already: whether one was begun and not finished, and
/// how often. See `IndexTrust`.
struct WalkRecord {
    private let words: SharedWords

    init(_ words: SharedWords) { self.words = words }

    /// The run of the machine in which a walk was begun and not finished; 0: none.
    static func pending(_ directory: Directory) throws(LarderError) -> UInt64 {
        try SharedWords.read(.walk, in: directory).0
    }

    /// How many stores in a row, the last one included, began that walk.
    static func unfinished(_ directory: Directory) throws(LarderError) -> UInt64 {
        try SharedWords.read(.walkCount, in: directory).0
    }

    private var count: UnsafeMutablePointer<UInt64> { words.address(.walkCount) }

    /// Notes that a walk begins behind an open in this run of the machine.
    /// - Parameter isAlone: false if other processes have the store open, whose walks are not over by this.
    func begin(run: UInt64, isAlone: Bool) {
        let before = clarder_load(words.address(.walk)) == run ? clarder_load(count) : 0
        if before == 0 || isAlone && before < .max { clarder_store(count, before + 1) }
        clarder_store(words.address(.walk), run)
    }

    /// Takes the count of `begin` back: the open failed, which is not a death.
    func forget() {
        let before = clarder_load(count)
        if before > 0, before < .max { clarder_store(count, before - 1) }
    }

    /// Notes that no walk is under way.
    func end() {
        clarder_store(words.address(.walk), 0)
        clarder_store(count, 0)
    }

    /// Notes that the walk found damage: the next one comes first, however long it takes.
    func noteDamage() { clarder_store(count, .max) }
}
