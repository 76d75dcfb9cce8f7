import Foundation

/// What a process wrote, named and synced, in order: the log of `Tests/PowerLoss/recorder.c`.
struct Recording {
    /// The kinds of records, with the numbers they have in the log.
    enum Kind: UInt32 {
        case write = 1
        case truncate, punch, sync, syncAll, create, makeDirectory, unlink, rename, link, said, removeDirectory
    }

    /// One operation.
    struct Operation {
        let kind: Kind
        /// The file; for a rename the directory it left.
        let inode: UInt64
        /// The directory of the (new) name.
        let directory: UInt64
        let offset: Int
        let length: Int
        let name: String
        let newName: String
        let data: Range<Int>
    }

    let bytes: [UInt8]
    private(set) var operations: [Operation] = []

    /// Reads a log; a record that was cut at the end does not count.
    init(_ path: String) throws {
        guard let data = FileManager.default.contents(atPath: path) else { throw Failure("no log at \(path)") }
        bytes = Array(data)
        var at = 0
        let head = 48
        bytes.withUnsafeBytes { raw in
            func word(_ offset: Int) -> Int { Int(raw.loadUnaligned(fromByteOffset: at + offset, as: UInt32.self)) }
            func long(_ offset: Int) -> UInt64 { raw.loadUnaligned(fromByteOffset: at + offset, as: UInt64.self) }
            while at + head <= raw.count {
                let (first, second, length) = (word(4), word(8), word(12))
                let end = at + head + first + second + length
                guard end <= raw.count, let kind = Kind(rawValue: UInt32(word(0))) else { break }
                let names = at + head
                operations.append(
                    Operation(
                        kind: kind, inode: long(16), directory: long(24), offset: Int(long(32)), length: Int(long(40)),
                        name: String(decoding: raw[names..<names + first], as: UTF8.self),
                        newName: String(decoding: raw[names + first..<names + first + second], as: UTF8.self),
                        data: (end - length)..<end))
                at = end
            }
        }
    }
}
