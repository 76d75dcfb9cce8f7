import CLarder
import SystemPackage

/// Bytes on disk, or about to be, that the index does not count: files being staged, files in `trash/` and in
/// `quarantine/`. One word per open store among the shared ones, so that every process sees the sum.
///
/// A process adds to its word before it allocates, looks at the sum, and takes back what does not fit: two processes
/// cannot both take the last room. The word of a process that died is dropped when its files are swept.
final class Ledger: Sendable {
    /// Each has two words: the instance that owns it, 0 if it is free, and its bytes.
    private static let slotCount = 252
    /// Owner of the first slot, for `QuarantineBytes`.
    private static let quarantineOwner: UInt64 = 1

    let words: SharedWords
    let slot: Int
    let instance: UInt64

    /// Takes a slot for `instance`: a free one, or one of a store that died. Throws `locked` if there is none.
    /// - Parameters:
    ///   - directory: that of the index.
    ///   - isAlone: true if no other process has the store open.
    init(directory: Directory, staging: Directory, instance: UInt64, isAlone: Bool) throws(LarderError) {
        words = try SharedWords(directory)
        self.instance = instance
        clarder_store(Self.owner(words, 0), Self.quarantineOwner)
        guard let free = Self.take(words, instance, staging, isAlone) else {
            throw LarderError(
                .locked, "\(directory.path) is open \(Self.slotCount - 1) times, the most there can be: close some",
                path: directory.path)
        }
        slot = free
        clarder_store(bytes(free), 0)
    }

    /// The sweep frees the slots of the dead, but only once a store is open: after a power loss the file may hold
    /// anything, and every slot may have an owner that never was.
    private static func take(
        _ words: SharedWords, _ instance: UInt64, _ staging: Directory, _ isAlone: Bool
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

    deinit { release() }

    private static func owner(_ words: SharedWords, _ slot: Int) -> UnsafeMutablePointer<UInt64> {
        words.address(.slots, 2 * slot)
    }

    private func owner(_ slot: Int) -> UInt64 { clarder_load(Self.owner(words, slot)) }

    func bytes(_ slot: Int) -> UnsafeMutablePointer<UInt64> { words.address(.slots, 2 * slot + 1) }

    /// Gives the slot back. Swept slots may have a new owner, whose word stays.
    func release() {
        guard owner(slot) == instance else { return }
        clarder_store(bytes(slot), 0)
        _ = clarder_claim(Self.owner(words, slot), instance, 0)
    }

    // MARK: Bytes

    /// Adds to this store's word; `bytes` may be negative.
    func add(_ bytes: Int64) {
        // A writer may outlive its store, whose slot may have a new owner by then.
        guard bytes != 0, owner(slot) == instance else { return }
        _ = clarder_add(self.bytes(slot), bytes)
    }

    /// This store's word.
    var own: Int64 { Int64(bitPattern: clarder_load(bytes(slot))) }

    /// The sum over all processes, the quarantine included.
    var total: Int64 {
        var sum: Int64 = 0
        for slot in 0..<Self.slotCount where owner(slot) != 0 {
            // A word that a dying process or a damaged file left below zero or absurd counts as nothing or as a lot.
            sum += UInt64(max(0, Int64(bitPattern: clarder_load(bytes(slot))))).asBytes
        }
        return sum
    }

    /// The sum over other open stores; quarantined bytes belong to none of them.
    var othersTotal: Int64 { total - max(0, own) - QuarantineBytes(self).count }

    // MARK: Other stores

    /// The other stores that hold a slot.
    var others: [UInt64] { (1..<Self.slotCount).map { owner($0) }.filter { $0 != 0 && $0 != instance } }

    /// Whether another store holds a slot. One that died does until the next sweep.
    var hasOthers: Bool {
        (1..<Self.slotCount).contains { slot in
            let owner = owner(slot)
            return owner != 0 && owner != instance
        }
    }

    /// Drops the word of a store that died.
    func clear(_ dead: UInt64) {
        for slot in 1..<Self.slotCount where owner(slot) == dead {
            clarder_store(bytes(slot), 0)
            _ = clarder_claim(Self.owner(words, slot), dead, 0)
        }
    }

    /// True if an instance has a slot, before or without mapping the words.
    static func hasSlot(_ instance: UInt64, _ directory: Directory) throws(LarderError) -> Bool {
        // The owner of a free slot is 0.
        guard instance > quarantineOwner else { return false }
        let words = try SharedWords.read(in: directory)
        return !words.isEmpty
            && (1..<slotCount).contains { words[SharedWords.Place.slots.rawValue + 2 * $0] == instance }
    }
}
