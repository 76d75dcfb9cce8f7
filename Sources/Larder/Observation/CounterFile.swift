import CLarder

/// The memory that a process counts in: an area of `index/counters`, mapped, so that what a process has counted is
/// there for the others at once and stays when it is killed.
///
/// A store that cannot have the file counts in memory of its own: one that is read-only, or belongs to another user, or
/// whose disk is full. Counting never keeps a store from opening.
final class CounterFile: @unchecked Sendable {
    // SAFETY: `words` points to memory that lives until `deinit`; all access to it is through C atomics.
    private let words: UnsafeMutablePointer<UInt64>
    private let isMapped: Bool
    private let index: Directory
    /// Where this process counts.
    let counters: Counters
    /// Why the store has no file of counters, where it should have one.
    let problem: LarderError?

    /// Maps the file, which is made again if it is damaged or not there.
    ///
    /// Call it under the lock of an open for writing: a file is replaced, never changed under a process that has it
    /// mapped.
    /// - Parameters:
    ///   - slot: the number of this process in the ledger, from 1. The first 15 have an area each; the others share
    ///     one.
    ///   - now: since when a new file counts.
    init(sharedIn index: Directory, slot: Int, at now: Timestamp) {
        let mapped = Result { () throws(LarderError) in try Self.map(index, at: now) }
        switch mapped {
        case .success(let words):
            self.words = words
            isMapped = true
            problem = nil
        case .failure(let error):
            words = Self.memory(at: now)
            isMapped = false
            problem = error
        }
        self.index = index
        let isSole = slot > 0 && slot < CounterLayout.areaCount
        counters = Counters(
            area: words + CounterLayout.area(isSole ? slot : 0), isSole: isSole || !isMapped)
    }

    /// Memory of its own, for a store that changes nothing.
    init(privateIn index: Directory, at now: Timestamp) {
        words = Self.memory(at: now)
        isMapped = false
        problem = nil
        self.index = index
        counters = Counters(area: words + CounterLayout.area(0), isSole: true)
    }

    deinit {
        if isMapped { munmap(words, CounterLayout.fileLength) } else { words.deallocate() }
    }

    private static func memory(at now: Timestamp) -> UnsafeMutablePointer<UInt64> {
        let count = CounterLayout.fileLength / 8
        let words = UnsafeMutableRawPointer.allocate(byteCount: count * 8, alignment: 64)
            .bindMemory(to: UInt64.self, capacity: count)
        words.initialize(repeating: 0, count: count)
        words[CounterLayout.sinceWord] = UInt64(bitPattern: now.microseconds)
        return words
    }

    // MARK: The file

    private static func map(
        _ index: Directory, at now: Timestamp
    ) throws(LarderError) -> UnsafeMutablePointer<UInt64> {
        let path = index.path(of: Layout.counters)
        let found = try reusable(index)
        let file = if let found { found } else { try make(index, at: now) }
        return try FileSystem.map(file, length: CounterLayout.fileLength, path: path)
            .assumingMemoryBound(to: UInt64.self)
    }

    /// The file that is there; nil if it cannot be used and has to be made again. Throws `unsupported` if a newer
    /// version of Larder made it.
    private static func reusable(_ index: Directory) throws(LarderError) -> OwnedDescriptor? {
        let path = index.path(of: Layout.counters)
        let file: OwnedDescriptor
        do throws(LarderError) {
            guard let found = try FileSystem.openIfPresent(Layout.counters, in: index, flags: O_RDWR) else {
                return nil
            }
            file = found
        } catch {
            // A link, a directory, or a file that this user may not write to.
            return nil
        }
        let status = try FileSystem.status(file, path: path)
        // With a second name it would be another file of the user's.
        guard status.isRegular, status.linkCount == 1, let words = read(file, index) else { return nil }
        if words[CounterLayout.magicWord] != CounterLayout.magic { return nil }
        if words[CounterLayout.formatWord] == CounterLayout.format {
            // Blocks that a copy or a restore left out: a full disk would otherwise be a signal later.
            if status.allocated < status.size { _ = try allocate(file, index) }
            return file
        }
        if words[CounterLayout.formatWord] < CounterLayout.format { return nil }
        throw LarderError(
            .unsupported, "\(path) was made by a newer version of Larder: this process counts by itself", path: path)
    }

    private static func make(_ index: Directory, at now: Timestamp) throws(LarderError) -> OwnedDescriptor {
        let path = index.path(of: Layout.counters)
        try FileSystem.unlink(Layout.counters, in: index)
        let file = try FileSystem.open(Layout.counters, in: index, flags: O_RDWR | O_CREAT | O_EXCL)
        do throws(LarderError) {
            FileSystem.writeInPlace(file)
            var words = [UInt64](repeating: 0, count: CounterLayout.fileLength / 8)
            words[CounterLayout.magicWord] = CounterLayout.magic
            words[CounterLayout.formatWord] = CounterLayout.format
            words[CounterLayout.sinceWord] = UInt64(bitPattern: now.microseconds)
            // Allocated and written, not only extended: a hole would get its blocks later, and a full disk would then
            // be a signal.
            _ = try allocate(file, index)
            let written = words.withUnsafeBytes { bytes in
                Result { () throws(LarderError) in try FileSystem.write(file, bytes, at: 0, path: path) }
            }
            try written.get()
            return file
        } catch {
            // The failure itself is what is reported; half a file is made again by the next open.
            _ = try? FileSystem.unlink(Layout.counters, in: index)
            throw error
        }
    }

    private static func allocate(_ file: OwnedDescriptor, _ index: Directory) throws(LarderError) -> Bool {
        try FileSystem.preallocate(
            raw: file.raw, offset: 0, length: Int64(CounterLayout.fileLength), path: index.path(of: Layout.counters))
    }

    /// The words of a file; nil if it has another length, or cannot be read. Read, not mapped: a page whose sector is
    /// damaged is an error here, and would be a signal there.
    private static func read(_ file: OwnedDescriptor, _ index: Directory) -> [UInt64]? {
        let path = index.path(of: Layout.counters)
        var words = [UInt64](repeating: 0, count: CounterLayout.fileLength / 8)
        let outcome = words.withUnsafeMutableBytes { bytes in
            Result { () throws(LarderError) in
                if try FileSystem.status(file, path: path).size != Int64(bytes.count) { return false }
                return try FileSystem.read(file, into: bytes, at: 0, path: path) == bytes.count
            }
        }
        guard case .success(true) = outcome else { return nil }
        return words
    }

    // MARK: Totals

    /// The sums over all processes; over this one alone where the store has no file that can be read.
    var totals: StoreCounters {
        let own = (0..<CounterLayout.fileLength / 8).map { clarder_count(words + $0) }
        if isMapped { return StoreCounters(own) }
        guard let file = try? FileSystem.openIfPresent(Layout.counters, in: index, flags: O_RDONLY),
            var words = Self.read(file, index), words[CounterLayout.magicWord] == CounterLayout.magic,
            words[CounterLayout.formatWord] == CounterLayout.format
        else { return StoreCounters(own) }
        for word in CounterLayout.headerWords..<words.count { words[word] &+= own[word] }
        return StoreCounters(words)
    }
}
