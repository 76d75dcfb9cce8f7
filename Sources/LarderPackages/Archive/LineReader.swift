import Larder
import SystemPackage

/// The lines of a member of an archive, without their ends (LF or CR LF), one at a time.
struct LineReader {
    private let stream: MemberStream
    private let name: String
    private let archive: FilePath
    private let limit: Int
    private var rest: ArraySlice<UInt8> = []
    private var hash = IncrementalDigest()
    private var isOver = false
    /// The number of the last line, from 1.
    private(set) var number = 0
    /// True if the last line had an end.
    private(set) var endsWithLineFeed = true

    init(_ member: ZipReader.Member, in archive: ZipReader) throws {
        let most = archive.limits.manifestBytes.bytes.addingReportingOverflow(Int64(archive.fileCount) << 12)
        if !most.overflow, member.length > most.partialValue {
            throw PackageError(
                .tooLarge, "it has \(member.length) bytes; the limit for this number of files is \(most.partialValue)",
                archive: archive.path, member: member.name)
        }
        stream = try archive.open(member)
        name = member.name
        self.archive = archive.path
        limit = Int(clamping: archive.limits.lineBytes.bytes)
    }

    /// The next line; nil after the last.
    mutating func next() throws -> [UInt8]? {
        var line: [UInt8] = []
        while true {
            if let end = rest.firstIndex(of: 0x0A) {
                line += rest[..<end]
                rest = rest[(end + 1)...]
                break
            }
            line += rest
            rest = []
            if line.count > limit {
                throw PackageError(
                    .badManifest, "line \(number + 1) has more than \(limit) bytes", archive: archive, member: name)
            }
            guard !isOver, let piece = try stream.next() else {
                isOver = true
                if line.isEmpty { return nil }
                endsWithLineFeed = false
                break
            }
            piece.withUnsafeBytes { hash.update($0) }
            rest = piece
        }
        number += 1
        if line.last == 0x0D { line.removeLast() }
        return line
    }

    /// The SHA-256 of the whole member. After the last line.
    var digest: Digest { hash.finalize() }

    /// Makes an error about the last line.
    func objection(_ message: String) -> PackageError {
        PackageError(.badManifest, "line \(number) \(message)", archive: archive, member: name)
    }
}
