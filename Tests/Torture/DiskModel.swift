import Foundation
import SeededData

/// What may be on a disk when the power fails.
///
/// **Data.** What was written to a file before its last sync is there. Of what was written since, each block (4 KiB, or
/// 512 bytes in the harsh model) is on disk as it was at some moment since that sync, independently of the others, and
/// so is the length. Space that was never written reads as zeros, in the harsh model as anything.
///
/// **Names.** In the journal model (as ext4, XFS, APFS) names change in one order for the whole file system, a crash
/// cuts it, and any sync writes out all of it before. In the harsh model each directory has an order of its own, and
/// only a sync of that directory keeps its names; a rename happens in both directories or in none.
struct DiskModel {
    let recording: Recording
    let isHarsh: Bool
    /// Forgets syncs, as a disk that lies: shows that the model finds violations.
    private let ignoresSyncs: Bool
    private let end: Int
    /// What was permanently on the disk when the recording began; nil: nothing.
    private let base: DiskImage?
    private var generator: SeededGenerator

    init(
        _ recording: Recording, crashAt end: Int, isHarsh: Bool, ignoresSyncs: Bool, seed: UInt64,
        base: DiskImage? = nil
    ) {
        self.base = base
        self.ignoresSyncs = ignoresSyncs
        self.recording = recording
        self.end = end
        self.isHarsh = isHarsh
        generator = SeededGenerator(seed: seed)
    }

    private typealias Operation = Recording.Operation

    /// Makes the directory with the inode `root` as it may be after the crash at `path`.
    mutating func build(_ root: UInt64, at path: String) throws {
        let operations = Array(recording.operations[..<end])
        let names = keptNames(operations)
        var history = History()
        history.base = base?.contents ?? [:]
        for (number, operation) in operations.enumerated() {
            switch operation.kind {
            case .write, .truncate, .punch: history.files[operation.inode, default: []].append(number)
            // An inode's number may be given to a new file.
            case .create:
                history.files[operation.inode] = []
                history.base[operation.inode] = nil
            case .sync where ignoresSyncs: break
            case .sync: history.lastSync[operation.inode] = number
            case .syncAll: history.lastSyncOfAll = number
            default: break
            }
        }
        try make(path, root, names, history)
    }

    /// Which operations concern the bytes of which file.
    private struct History {
        var files: [UInt64: [Int]] = [:]
        var base: [UInt64: [UInt8]] = [:]
        var lastSync: [UInt64: Int] = [:]
        var lastSyncOfAll = -1
    }

    // MARK: Names

    private typealias Names = DiskImage.Names

    private mutating func keptNames(_ operations: [Operation]) -> Names {
        var floor: [UInt64: Int] = [:]
        var floorOfAll = 0
        var changes: [Int] = []
        for (number, operation) in operations.enumerated() {
            switch operation.kind {
            case .sync where ignoresSyncs: break
            case .sync: if isHarsh { floor[operation.inode] = number } else { floorOfAll = number }
            case .syncAll: floorOfAll = number
            case .create, .makeDirectory, .unlink, .rename, .link, .removeDirectory: changes.append(number)
            default: break
            }
        }
        // Names that are kept in one directory keep everything before them in the other.
        for number in changes.reversed() where operations[number].kind == .rename {
            let pair = [operations[number].inode, operations[number].directory]
            if pair.contains(where: { floor[$0, default: 0] > number }) {
                for directory in pair { floor[directory] = max(floor[directory, default: 0], number + 1) }
            }
        }
        let cut = isHarsh ? 0 : Int.random(in: floorOfAll...max(floorOfAll, operations.count), using: &generator)
        var cuts: [UInt64: Int] = [:]
        var names = base?.names ?? [:]
        for number in changes {
            let operation = operations[number]
            let directories =
                operation.kind == .rename ? [operation.inode, operation.directory] : [operation.directory]
            if isHarsh {
                var isKept = true
                for directory in directories {
                    let least = max(floorOfAll, floor[directory, default: 0])
                    if cuts[directory] == nil {
                        let all = generator.oneIn(3)
                        let own = changes.filter {
                            $0 >= least && (operations[$0].directory == directory || operations[$0].inode == directory)
                        }
                        cuts[directory] =
                            all ? operations.count : own.randomElement(using: &generator) ?? operations.count
                    }
                    if number >= cuts[directory]!, number >= least { isKept = false }
                }
                if !isKept {
                    for directory in directories { cuts[directory] = min(cuts[directory]!, number) }
                    continue
                }
            } else if number >= cut {
                continue
            }
            apply(operation, &names)
        }
        return names
    }

    private func apply(_ operation: Operation, _ names: inout Names) {
        switch operation.kind {
        case .create, .link: names[operation.directory, default: [:]][operation.name] = (operation.inode, false)
        case .makeDirectory: names[operation.directory, default: [:]][operation.name] = (operation.inode, true)
        case .unlink, .removeDirectory: names[operation.directory]?[operation.name] = nil
        case .rename:
            guard let moved = names[operation.inode]?.removeValue(forKey: operation.name) else { return }
            names[operation.directory, default: [:]][operation.newName] = moved
        default: break
        }
    }

    private mutating func make(
        _ path: String, _ inode: UInt64, _ names: Names, _ history: History
    ) throws {
        guard mkdir(path, 0o700) == 0 else { throw Failure("mkdir \(path): \(errno)") }
        for (name, item) in names[inode] ?? [:] {
            let child = path + "/" + name
            if item.isDirectory {
                try make(child, item.inode, names, history)
                continue
            }
            let descriptor = open(child, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
            guard descriptor >= 0 else { throw Failure("open \(child): \(errno)") }
            defer { close(descriptor) }
            var bytes = content(
                history.base[item.inode] ?? [], history.files[item.inode] ?? [],
                synced: max(history.lastSync[item.inode] ?? -1, history.lastSyncOfAll))
            if ["ledger", "lock.mdb", "counters"].contains(name) { scramble(&bytes, isLedger: name == "ledger") }
            let count = bytes.withUnsafeBytes { pwrite(descriptor, $0.baseAddress, $0.count, 0) }
            guard count == bytes.count else { throw Failure("write \(child): \(errno)") }
        }
    }

    // MARK: Data

    private mutating func content(_ base: [UInt8], _ numbers: [Int], synced: Int) -> [UInt8] {
        let operations = recording.operations
        let block = isHarsh ? 512 : 4096
        var bytes = base
        var later: [Int] = []
        for number in numbers {
            if number < synced { apply(operations[number], to: &bytes) { _ in true } } else { later.append(number) }
        }
        if later.isEmpty { return bytes }
        // How many of the later changes each block has seen, and the length.
        let mode = Int.random(in: 0..<5, using: &generator)
        var changes: [Int: Int] = [:]
        var lengths = [bytes.count]
        for number in later {
            for place in blocks(operations[number], block) { changes[place, default: 0] += 1 }
            lengths.append(length(after: operations[number], lengths[lengths.count - 1]))
        }
        var cuts: [Int: Int] = [:]
        for (place, count) in changes.sorted(by: { $0.key < $1.key }) {
            cuts[place] = mode == 0 ? 0 : mode == 1 ? count : Int.random(in: 0...count, using: &generator)
        }
        let length = mode == 1 ? lengths.last! : lengths.randomElement(using: &generator)!
        let written = bytes.count
        for number in later {
            let operation = operations[number]
            if operation.kind == .truncate { continue }
            apply(operation, to: &bytes) { offset in
                cuts[offset / block, default: 0] > 0
            }
            for place in blocks(operation, block) { cuts[place, default: 0] -= 1 }
        }
        if bytes.count > length { bytes.removeLast(bytes.count - length) }
        let old = bytes.count
        if length > old { bytes += [UInt8](repeating: 0, count: length - old) }
        if isHarsh, generator.oneIn(2) {
            // Blocks that were allocated and never written hold what was there before.
            for place in stride(from: (written + block - 1) / block * block, to: bytes.count, by: block)
            where bytes[place..<min(place + block, bytes.count)].allSatisfy({ $0 == 0 }) {
                fill(&bytes, place..<min(place + block, bytes.count))
            }
        }
        return bytes
    }

    private func length(after operation: Operation, _ length: Int) -> Int {
        switch operation.kind {
        case .truncate: operation.length
        case .write: max(length, operation.offset + operation.length)
        default: length
        }
    }

    private func blocks(_ operation: Operation, _ block: Int) -> Range<Int> {
        guard operation.kind != .truncate, operation.length > 0 else { return 0..<0 }
        return operation.offset / block..<(operation.offset + operation.length - 1) / block + 1
    }

    private func apply(_ operation: Operation, to bytes: inout [UInt8], where isKept: (Int) -> Bool) {
        let block = isHarsh ? 512 : 4096
        switch operation.kind {
        case .truncate:
            if operation.length < bytes.count { bytes.removeLast(bytes.count - operation.length) }
            if operation.length > bytes.count {
                bytes += [UInt8](repeating: 0, count: operation.length - bytes.count)
            }
        case .write, .punch:
            let end = operation.offset + operation.length
            if operation.kind == .write, end > bytes.count {
                bytes += [UInt8](repeating: 0, count: end - bytes.count)
            }
            var at = operation.offset
            while at < min(end, bytes.count) {
                let next = min((at / block + 1) * block, end, bytes.count)
                if isKept(at) {
                    for index in at..<next {
                        bytes[index] =
                            operation.kind == .punch
                            ? 0 : recording.bytes[operation.data.lowerBound + index - operation.offset]
                    }
                }
                at = next
            }
        default: break
        }
    }

    // MARK: Mapped files

    /// Stores through a mapping are not recorded: after a crash such a file may hold anything that was ever stored
    /// there.
    private mutating func scramble(_ bytes: inout [UInt8], isLedger: Bool) {
        switch Int.random(in: 0..<4, using: &generator) {
        case 0: break
        case 1: fill(&bytes, 0..<bytes.count)
        case 2 where isLedger && bytes.count >= 4096:
            // Its magic, and slots of stores that no longer exist, with what they may have held.
            bytes.withUnsafeMutableBytes { raw in
                raw.storeBytes(of: 0x4C61_7264_6572_4C31, as: UInt64.self)
                raw.storeBytes(of: 1, toByteOffset: 16, as: UInt64.self)
                for slot in 1..<Int.random(in: 2..<200, using: &generator) {
                    raw.storeBytes(of: generator.next() | 2, toByteOffset: 16 + slot * 16, as: UInt64.self)
                    let held = generator.oneIn(2) ? generator.next() % 1_000_000 : generator.next()
                    raw.storeBytes(of: held, toByteOffset: 24 + slot * 16, as: UInt64.self)
                }
            }
        default:
            for start in stride(from: 0, to: bytes.count, by: 512) where generator.oneIn(2) {
                fill(&bytes, start..<min(start + 512, bytes.count))
            }
        }
    }

    private mutating func fill(_ bytes: inout [UInt8], _ range: Range<Int>) {
        for index in range { bytes[index] = UInt8(truncatingIfNeeded: generator.next()) }
    }
}
