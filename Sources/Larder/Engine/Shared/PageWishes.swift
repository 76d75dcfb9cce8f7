import CLarder

/// How often a writer wanted a snapshot to be let go of; see `Yielding`.
struct PageWishes {
    private let words: SharedWords

    init(_ words: SharedWords) { self.words = words }

    /// How often so far.
    static func count(_ directory: Directory) throws(LarderError) -> UInt64 {
        try SharedWords.read(.wishes, in: directory).0
    }

    /// Asks those who walk over a snapshot to let go of it.
    func ask() { _ = clarder_add(words.address(.wishes), 1) }
}
