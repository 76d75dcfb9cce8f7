import CLarder

/// What `data.mdb` was like when the last store closed; see `IndexTrust`.
struct ClosedNote {
    private let words: SharedWords
    private static let mask: UInt64 = 0x4C61_7264_6572_4E31

    init(_ words: SharedWords) { self.words = words }

    /// The note of the store that closed last; 0 if there is none, or it is unreadable.
    static func read(_ directory: Directory) throws(LarderError) -> UInt64 {
        let words = try SharedWords.read(.closedNote, in: directory)
        return words.0 ^ mask == words.1 ? words.0 : 0
    }

    /// Notes what the file is like now that no process uses it; 0: nothing is known.
    func set(_ note: UInt64) {
        clarder_store(words.address(.closedNote), note)
        clarder_store(words.address(.closedNote, 1), note == 0 ? 0 : note ^ Self.mask)
    }
}
