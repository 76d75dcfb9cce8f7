import CLarder
import SystemPackage

/// Bytes on disk, or about to be, that the index does not count: files being staged, files in `trash/` and in
/// `quarantine/`. One word per open store in a small mapped file, so that every process sees the sum.
///
/// A process adds to its word before it allocates, looks at the sum, and takes back what does not fit: two processes
/// cannot both take the last room. The word of a process that died is dropped when its files are swept.
final class Ledger: @unchecked Sendable {
    // SAFETY: `words` points to a shared mapping that lives until `deinit`; all access is through C atomics.
    static let fileLength = 4096
    private static let magic: UInt64 = 0x4C61_7264_6572_4C31
    private static let slotWords = 2
    private static let slotCount = 252
    /// How many stores in a row began that walk and did not finish it.
    private static let walkCountWord = 1
    /// Where the store lies; see `Opening.place`.
    private static let placeWord = 509
    /// The run of the machine in which the pages of the index are being walked behind a store that is open already.
    private static let walkWord = 506
    /// The instance that looks after what an unclean shutdown of the machine left; see `Scrubber`.
    private static let scrubWord = 507
    /// How often a writer wanted a snapshot to be let go of; see `Yielding`.
    private static let wantedWord = 508
    /// What `data.mdb` was like when the last store closed; see `IndexTrust`. The second word guards against chance.
    private static let noteWord = 510
    private static let noteMask: UInt64 = 0x4C61_7264_6572_4E31
    /// Owner of the first slot: bytes in `quarantine/`, which belong to no open store.
    private static let quarantineOwner: UInt64 = 1

    private let words: UnsafeMutablePointer<UInt64>
    let slot: Int
    private let instance: UInt64

    /// Maps the ledger and takes a slot for `instance`: a free one, or one of a store that died. Throws `locked` if
    /// there is none.
    /// - Parameter isAlone: true if no other process has the store open.
    init(directory: Directory, staging: Directory, instance: UInt64, isAlone: Bool) throws(LarderError) {
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
        let words = address.assumingMemoryBound(to: UInt64.self)
        if clarder_load(words) != Self.magic {
            for index in 0..<(Self.fileLength / 8) { clarder_store(words + index, 0) }
            clarder_store(words, Self.magic)
        }
        self.instance = instance
        clarder_store(Self.owner(words, 0), Self.quarantineOwner)
        guard let free = Self.take(words, instance, staging, isAlone) else {
            munmap(address, Self.fileLength)
            throw LarderError(
                .locked, "\(directory.path) is open \(Self.slotCount - 1) times, the most there can be: close some",
                path: directory.path)
        }
        self.words = words
        slot = free
        clarder_store(Self.bytes(words, free), 0)
    }

    /// The sweep frees the slots of the dead, but only once a store is open: after a power loss the file may hold
    /// anything, and every slot may have an owner that never was.
    private static func take(
        _ words: UnsafeMutablePointer<UInt64>, _ instance: UInt64, _ staging: Directory, _ isAlone: Bool
    ) -> Int? {
        if let free = (1..<slotCount).first(where: { clarder_claim(owner(words, $0), 0, instance) }) { return free }
        return (1..<slotCount).first { slot in
            let dead = clarder_load(owner(words, slot))
            // An instance whose state is unknown counts as alive.
            guard let seized = try? InstanceLock.seize(dead, staging: staging, missingIsDead: isAlone) else {
                return false
            }
            return withExtendedLifetime(seized) { clarder_claim(owner(words, slot), dead, instance) }
        }
    }

    deinit {
        release()
        munmap(words, Self.fileLength)
    }

    private static func owner(_ words: UnsafeMutablePointer<UInt64>, _ slot: Int) -> UnsafeMutablePointer<UInt64> {
        words + 2 + slot * slotWords
    }

    private static func bytes(_ words: UnsafeMutablePointer<UInt64>, _ slot: Int) -> UnsafeMutablePointer<UInt64> {
        words + 3 + slot * slotWords
    }

    /// Gives the slot back. Swept slots may have a new owner, whose word stays.
    func release() {
        guard clarder_load(Self.owner(words, slot)) == instance else { return }
        clarder_store(Self.bytes(words, slot), 0)
        _ = clarder_claim(Self.owner(words, slot), instance, 0)
    }

    /// The note of the store that closed last; 0 if there is none, or one cannot tell.
    static func closedNote(_ directory: Directory) throws(LarderError) -> UInt64 {
        let words = try read(noteWord, in: directory)
        return words.0 ^ noteMask == words.1 ? words.0 : 0
    }

    /// As the property `pendingWalk`, before the ledger is mapped.
    static func pendingWalk(_ directory: Directory) throws(LarderError) -> UInt64 {
        try read(walkWord, in: directory).0
    }

    /// How many stores in a row, the last one included, began the walk that `pendingWalk` tells of.
    static func unfinishedWalks(_ directory: Directory) throws(LarderError) -> UInt64 {
        try read(walkCountWord, in: directory).0
    }

    /// True if an instance has a slot, before or without mapping the ledger.
    static func hasSlot(_ instance: UInt64, _ directory: Directory) throws(LarderError) -> Bool {
        // The owner of a free slot is 0.
        guard instance > quarantineOwner,
            let file = try FileSystem.openIfPresent(Layout.ledger, in: directory, flags: O_RDONLY)
        else { return false }
        var words = [UInt64](repeating: 0, count: fileLength / 8)
        let result = words.withUnsafeMutableBytes { raw in
            Result { () throws(LarderError) in
                try FileSystem.read(file, into: raw, at: 0, path: directory.path(of: Layout.ledger))
            }
        }
        guard try result.get() == fileLength, words[0] == magic else { return false }
        return (1..<slotCount).contains { words[2 + $0 * slotWords] == instance }
    }

    /// Two words of the file; zeros if it has none.
    private static func read(_ word: Int, in directory: Directory) throws(LarderError) -> (UInt64, UInt64) {
        guard let file = try FileSystem.openIfPresent(Layout.ledger, in: directory, flags: O_RDONLY) else {
            return (0, 0)
        }
        var words: (UInt64, UInt64) = (0, 0)
        let result = withUnsafeMutableBytes(of: &words) { raw in
            Result { () throws(LarderError) in
                try FileSystem.read(file, into: raw, at: Int64(word * 8), path: directory.path(of: Layout.ledger))
            }
        }
        return try result.get() == 16 ? words : (0, 0)
    }

    /// Notes what `data.mdb` is like now that no process uses it; 0: nothing is known.
    func setClosedNote(_ note: UInt64) {
        clarder_store(words + Self.noteWord, note)
        clarder_store(words + Self.noteWord + 1, note == 0 ? 0 : note ^ Self.noteMask)
    }

    /// How often writers asked for pages that snapshots hold, before or without mapping the ledger.
    static func wishes(_ directory: Directory) throws(LarderError) -> UInt64 { try read(wantedWord, in: directory).0 }

    /// Asks those who walk over a snapshot to let go of it.
    func askForPages() { _ = clarder_add(words + Self.wantedWord, 1) }

    /// Has the words on disk: msync(2). A note that power loss brought back would speak for files written since.
    func sync(_ directory: Directory) throws(LarderError) {
        try Sync.mapping(words, Self.fileLength, path: directory.path(of: Layout.ledger))
    }

    /// The run of the machine in which a walk over the pages of the index was begun and not finished; 0: none.
    var pendingWalk: UInt64 { clarder_load(words + Self.walkWord) }

    /// Notes that a walk begins behind an open in this run of the machine.
    /// - Parameter isAlone: false if other processes have the store open, whose walks are not over by this.
    func beginWalk(run: UInt64, isAlone: Bool) {
        let before = pendingWalk == run ? clarder_load(words + Self.walkCountWord) : 0
        if before == 0 || isAlone && before < .max { clarder_store(words + Self.walkCountWord, before + 1) }
        clarder_store(words + Self.walkWord, run)
    }

    /// Takes the count of `beginWalk` back: the open failed, which is not a death.
    func forgetWalk() {
        let count = clarder_load(words + Self.walkCountWord)
        if count > 0, count < .max { clarder_store(words + Self.walkCountWord, count - 1) }
    }

    /// Notes that no walk is under way.
    func endWalk() {
        clarder_store(words + Self.walkWord, 0)
        clarder_store(words + Self.walkCountWord, 0)
    }

    /// Notes that the walk found damage: the next one comes first, however long it takes.
    func noteWalkFoundDamage() { clarder_store(words + Self.walkCountWord, .max) }

    /// Where the store lay when it was last opened for writing; 0: not known.
    var place: UInt64 {
        get { clarder_load(words + Self.placeWord) }
        set { clarder_store(words + Self.placeWord, newValue) }
    }

    /// Makes this instance the one that scrubs, unless another that lives does.
    func claimScrub(staging: Directory, isAlone: Bool) throws(LarderError) -> Bool {
        let word = words + Self.scrubWord
        let owner = clarder_load(word)
        if owner == instance { return true }
        guard owner != 0 else { return clarder_claim(word, 0, instance) }
        guard let seized = try InstanceLock.seize(owner, staging: staging, missingIsDead: isAlone) else { return false }
        return withExtendedLifetime(seized) { clarder_claim(word, owner, instance) }
    }

    /// Gives that up.
    func releaseScrub() { _ = clarder_claim(words + Self.scrubWord, instance, 0) }

    /// Adds to this store's word; `bytes` may be negative.
    func add(_ bytes: Int64) {
        // A writer may outlive its store, whose slot may have a new owner by then.
        guard bytes != 0, clarder_load(Self.owner(words, slot)) == instance else { return }
        _ = clarder_add(Self.bytes(words, slot), bytes)
    }

    /// This store's word.
    var own: Int64 { Int64(bitPattern: clarder_load(Self.bytes(words, slot))) }

    /// The sum over all processes, the quarantine included.
    var total: Int64 {
        var sum: Int64 = 0
        for slot in 0..<Self.slotCount where clarder_load(Self.owner(words, slot)) != 0 {
            // A word that a dying process or a damaged file left below zero or absurd counts as nothing or as a lot.
            sum += UInt64(max(0, Int64(bitPattern: clarder_load(Self.bytes(words, slot))))).asBytes
        }
        return sum
    }

    /// The sum over other open stores; quarantined bytes belong to none of them.
    var othersTotal: Int64 { total - max(0, own) - quarantine }

    /// Bytes that lie in `quarantine/`.
    var quarantine: Int64 { max(0, Int64(bitPattern: clarder_load(Self.bytes(words, 0)))) }

    /// The other stores that hold a slot.
    var others: [UInt64] {
        (1..<Self.slotCount).map { clarder_load(Self.owner(words, $0)) }.filter { $0 != 0 && $0 != instance }
    }

    /// Whether another store holds a slot. One that died does until the next sweep.
    var hasOthers: Bool {
        (1..<Self.slotCount).contains { slot in
            let owner = clarder_load(Self.owner(words, slot))
            return owner != 0 && owner != instance
        }
    }

    /// Drops the word of a store that died.
    func clear(_ dead: UInt64) {
        for slot in 1..<Self.slotCount where clarder_load(Self.owner(words, slot)) == dead {
            clarder_store(Self.bytes(words, slot), 0)
            _ = clarder_claim(Self.owner(words, slot), dead, 0)
        }
    }

    /// Adds to the bytes that lie in `quarantine/`.
    func addQuarantine(_ bytes: Int64) { _ = clarder_add(Self.bytes(words, 0), bytes) }

    /// Sets them to `new`, unless they are no longer `old`.
    func correctQuarantine(from old: Int64, to new: Int64) {
        _ = clarder_claim(Self.bytes(words, 0), UInt64(bitPattern: old), UInt64(bitPattern: new))
    }
}
