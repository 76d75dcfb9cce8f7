import CLarder
import SystemPackage

/// Words that all processes with a store open share, in the small mapped file `index/ledger`. What each is for is the
/// business of a type of its own, which is named by that.
final class SharedWords: @unchecked Sendable {
    // SAFETY: `words` points to a shared mapping that lives until `deinit`; all access is through C atomics.
    static let fileLength = 4096
    static let magic: UInt64 = 0x4C61_7264_6572_4C31

    /// Where a word is in the file, in words of 64 bits. The first one is the magic number.
    enum Place: Int {
        case walkCount = 1
        /// Two for each slot; see `Ledger`.
        case slots = 2
        case walk = 506
        case scrub = 507
        case wishes = 508
        case storePlace = 509
        /// Two: the second one guards against chance.
        case closedNote = 510
    }

    private let words: UnsafeMutablePointer<UInt64>

    /// Maps the file, which is made if it is not there. After a power loss it may hold anything.
    init(_ directory: Directory) throws(LarderError) {
        let path = directory.path(of: Layout.ledger)
        let file = try FileSystem.open(Layout.ledger, in: directory, flags: O_RDWR | O_CREAT)
        if try FileSystem.status(file, path: path).size != Self.fileLength {
            FileSystem.writeInPlace(file)
            let zeros = [UInt8](repeating: 0, count: Self.fileLength)
            // Written, not only extended: a hole would be allocated later, and a full disk would then be a signal.
            try FileSystem.write(file, zeros, at: 0, path: path)
            try FileSystem.truncate(file, to: Int64(Self.fileLength), path: path)
        }
        let address = try FileSystem.map(file, length: Self.fileLength, path: path)
        // SAFETY: mmap(2) gave whole pages, aligned for words, which nothing has bound to another type.
        words = address.assumingMemoryBound(to: UInt64.self)
        if clarder_load(words) != Self.magic {
            for index in 0..<(Self.fileLength / 8) { clarder_store(words + index, 0) }
            clarder_store(words, Self.magic)
        }
    }

    deinit { munmap(words, Self.fileLength) }

    /// - Parameter offset: in words from there.
    func address(_ place: Place, _ offset: Int = 0) -> UnsafeMutablePointer<UInt64> { words + place.rawValue + offset }

    /// Has the words on disk: msync(2). A note that power loss brought back would speak for files written since.
    func sync(_ directory: Directory) throws(LarderError) {
        try Sync.mapping(words, Self.fileLength, path: directory.path(of: Layout.ledger))
    }

    // MARK: Without mapping the file

    /// A word and the next one; zeros if there is no file.
    static func read(_ place: Place, in directory: Directory) throws(LarderError) -> (UInt64, UInt64) {
        let words = try read(2, from: place.rawValue, in: directory)
        return words.isEmpty ? (0, 0) : (words[0], words[1])
    }

    /// All words; empty if there is no file, or another one.
    static func read(in directory: Directory) throws(LarderError) -> [UInt64] {
        let words = try read(fileLength / 8, from: 0, in: directory)
        return words.first == magic ? words : []
    }

    private static func read(_ count: Int, from start: Int, in directory: Directory) throws(LarderError) -> [UInt64] {
        guard let file = try FileSystem.openIfPresent(Layout.ledger, in: directory, flags: O_RDONLY) else { return [] }
        var words = [UInt64](repeating: 0, count: count)
        let result = words.withUnsafeMutableBytes { raw in
            Result { () throws(LarderError) in
                try FileSystem.read(file, into: raw, at: Int64(start * 8), path: directory.path(of: Layout.ledger))
            }
        }
        return try result.get() == count * 8 ? words : []
    }
}

extension SharedWords {
    /// Where the store lay when it was last opened for writing; 0: not known. See `Opening.place`.
    var storePlace: UInt64 {
        get { clarder_load(address(.storePlace)) }
        set { clarder_store(address(.storePlace), newValue) }
    }
}
