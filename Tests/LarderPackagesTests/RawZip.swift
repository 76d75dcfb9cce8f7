/// A zip archive written byte by byte, so that each field can lie (APPNOTE.TXT 4.3).
struct RawZip {
    struct File {
        var name: [UInt8]
        var data: [UInt8]
        /// Nil: that of the data.
        var crc: UInt32?
        var method: UInt16 = 0
        var flags: UInt16 = 0
        /// Nil: the count of the data.
        var length: UInt32?
        var packedLength: UInt32?
        /// The upper half is the mode of a Unix system.
        var attributes: UInt32 = 0o100644 << 16
        /// The file whose local header the directory points to. Nil: its own.
        var sharedWith: Int?

        init(_ name: String, _ data: [UInt8] = [], _ change: (inout File) -> Void = { _ in }) {
            self.init(name: Array(name.utf8), data, change)
        }

        init(name: [UInt8], _ data: [UInt8], _ change: (inout File) -> Void = { _ in }) {
            self.name = name
            self.data = data
            change(&self)
        }
    }

    var files: [File]
    /// Members that the end record claims. Nil: those that there are.
    var count: UInt16?
    var comment: [UInt8] = []
    /// Where the directory says that a file is, by its number. Others are where they are.
    var movedTo: [Int: Int] = [:]

    init(_ files: [File]) { self.files = files }

    /// Responses and a manifest for them.
    static func manifest(_ lines: [String], _ files: [File]) -> RawZip {
        RawZip(files + [File("manifest.afcache", Array(lines.joined(separator: "\n").utf8))])
    }

    var bytes: [UInt8] {
        var result: [UInt8] = []
        var offsets: [Int] = []
        for file in files {
            offsets.append(result.count)
            result += [0x50, 0x4B, 3, 4] + common(file) + two(UInt16(file.name.count)) + two(0) + file.name + file.data
        }
        let start = result.count
        for (index, file) in files.enumerated() {
            result += [0x50, 0x4B, 1, 2] + two(0x0314) + common(file)
            result += two(UInt16(file.name.count)) + two(0) + two(0) + two(0) + two(0) + four(file.attributes)
            result += four(UInt32(movedTo[index] ?? offsets[file.sharedWith ?? index])) + file.name
        }
        let length = result.count - start
        let claimed = count ?? UInt16(files.count)
        result += [0x50, 0x4B, 5, 6] + two(0) + two(0) + two(claimed) + two(claimed)
        return result + four(UInt32(length)) + four(UInt32(start)) + two(UInt16(comment.count)) + comment
    }

    private func common(_ file: File) -> [UInt8] {
        two(20) + two(file.flags) + two(file.method) + two(0) + two(0x5921) + four(file.crc ?? crc(file.data))
            + four(file.packedLength ?? UInt32(file.data.count)) + four(file.length ?? UInt32(file.data.count))
    }

    private func two(_ value: UInt16) -> [UInt8] { [UInt8(value & 0xFF), UInt8(value >> 8)] }
    private func four(_ value: UInt32) -> [UInt8] {
        two(UInt16(value & 0xFFFF)) + two(UInt16(value >> 16))
    }

    private func crc(_ bytes: [UInt8]) -> UInt32 {
        ~bytes.reduce(~0) { crc, byte in
            (0..<8).reduce(crc ^ UInt32(byte)) { value, _ in (value >> 1) ^ (value & 1 == 0 ? 0 : 0xEDB8_8320) }
        }
    }
}
