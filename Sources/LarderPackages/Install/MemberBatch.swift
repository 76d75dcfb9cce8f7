import HTTPCaching
import Larder
import LarderHTTP
import SystemPackage

/// Members that wait to be put in one commit, and are compared with those of the earlier version.
struct MemberBatch {
    private struct Waiting {
        let member: PlannedMember
        let body: Content
        let digest: Digest

        enum Content {
            case bytes([UInt8])
            /// Put already, as it was read.
            case written
            /// In the store, if the earlier version has it.
            case installed
        }
    }

    let rules: CacheRules
    /// Bytes that one commit takes.
    var limit = 4 << 20
    private let store: Store
    private let generation: String
    private let previous: InstalledPackage?
    private let archive: FilePath
    private let options: InstallOptions
    private var waiting: [Waiting] = []
    private var bytes = 0

    private static let mostMembers = 256
    /// Longer bodies are put as they are read.
    private static let longBody: Int64 = 256 << 10

    init(
        _ store: Store, _ generation: String, _ previous: InstalledPackage?, _ archive: FilePath,
        _ options: InstallOptions, _ rules: CacheRules
    ) {
        self.store = store
        self.generation = generation
        self.previous = previous
        self.archive = archive
        self.options = options
        self.rules = rules
    }

    var isFull: Bool { waiting.count >= Self.mostMembers || bytes >= limit }

    /// Adds a member, whose bytes it reads.
    mutating func add(_ member: PlannedMember, in archive: ZipReader) throws {
        bytes += member.line?.count ?? 200
        switch member.content {
        case .installed:
            guard let digest = member.digest else { throw PackageError.missing(member.url, in: self.archive) }
            waiting.append(Waiting(member: member, body: .installed, digest: digest))
            // The lookup of the entry may bring its bytes.
            bytes += Int(clamping: min(member.length, Self.longBody))
        case .archive(let file) where member.length > Self.longBody:
            let writer = try store.writer(for: key(member), put(member, nil), length: ByteCount(member.length))
            let digest = try archive.write(file, member.digest, to: writer, for: member.url)
            waiting.append(Waiting(member: member, body: .written, digest: digest))
        case .archive(let file):
            let content = try archive.bytes(file, limit: Int(Self.longBody))
            let digest = Digest.of(content)
            if let declared = member.digest, declared != digest {
                throw PackageError.mismatch(member.url, in: self.archive)
            }
            waiting.append(Waiting(member: member, body: .bytes(content), digest: digest))
            bytes += content.count
        }
    }

    /// Puts what waits, in one commit; returns lines for the list, of members that have none of their own.
    mutating func write(_ result: inout InstallResult) throws -> [[UInt8]] {
        let members = waiting
        (waiting, bytes) = ([], 0)
        if members.isEmpty { return [] }
        let old = try previous.map { previous in
            try store.get(members.map { PackageKeys.member(previous.id, $0.member.key) }, includingExpired: true)
        }
        var batch = WriteBatch()
        var lines: [[UInt8]] = []
        for (index, waiting) in members.enumerated() {
            let (member, entry) = (waiting.member, old.flatMap { $0[index] })
            let revision = entry.flatMap { originsWord($0, waiting) }
            let isUnchanged = revision != nil || (entry.map { isSame($0, waiting) } ?? false)
            let options = put(member, revision)
            switch waiting.body {
            case .bytes(let bytes): batch.put(bytes, for: key(member), options, digest: waiting.digest)
            case .written:
                guard revision != nil else { break }
                batch.put(contentOf: waiting.digest, for: key(member), options)
            case .installed:
                guard let entry, entry.digest == waiting.digest else {
                    // What displacement took is not brought back by an increment.
                    guard result.package.mode == .members else { throw PackageError.missing(member.url, in: archive) }
                    result.missing += 1
                    continue
                }
                if entry.body.length.bytes != member.length {
                    throw PackageError(
                        .digestMismatch,
                        "the content is \(entry.body.length.bytes) bytes long; the list says \(member.length)",
                        archive: archive, member: member.url)
                }
                batch.put(contentOf: waiting.digest, for: key(member), options)
            }
            switch entry {
            case nil: result.added += 1
            case _? where isUnchanged: result.unchanged += 1
            case _?: result.replaced += 1
            }
            if member.line == nil { lines.append(line(waiting)) }
        }
        if batch.isEmpty { return lines }
        try store.write(batch).throwIfFailed()
        return lines
    }

    private func key(_ member: PlannedMember) -> Key { PackageKeys.member(generation, member.key) }

    private func put(_ member: PlannedMember, _ metadata: [UInt8]?) -> PutOptions {
        PutOptions(
            lifetime: .never, tags: [PackageKeys.tag(generation)], metadata: metadata ?? record(member)
        ).withReservedNames.withSharedBody
    }

    private func record(_ member: PlannedMember) -> [UInt8] {
        PackagedResponse(head: member.head, date: member.date, length: member.length, rules: rules).metadata
    }

    private func line(_ waiting: Waiting) -> [UInt8] {
        let line = MemberList.Line(
            url: waiting.member.url, sha256: waiting.digest.hexadecimal, size: waiting.member.length,
            fields: waiting.member.head.headerFields.map { [$0.name.rawName, $0.value] })
        return Array(line.line.utf8)
    }

    // MARK: The earlier version

    /// The record of a member of which the origin has said something since the package was made, if the content is the
    /// same: it says more than the package.
    private func originsWord(_ old: Entry, _ waiting: Waiting) -> [UInt8]? {
        guard options.conflicts != .replace, old.digest == waiting.digest else { return nil }
        return PackagedResponse.revision(old.metadata, since: waiting.member.stated)
    }

    /// True if content and fields are the same. A `Date` that the package does not give does not count.
    private func isSame(_ old: Entry, _ waiting: Waiting) -> Bool {
        guard old.digest == waiting.digest, let old = PackagedResponse.read(old.metadata),
            let new = PackagedResponse.read(record(waiting.member))
        else { return false }
        if waiting.member.hasOwnDate { return old.head == new.head }
        var (left, right) = (old.head, new.head)
        left.headerFields[.date] = nil
        right.headerFields[.date] = nil
        return left == right
    }
}

extension ZipReader {
    /// Writes a member to the store; returns its digest.
    func write(_ file: Member, _ declared: Digest?, to writer: BodyWriter, for name: String? = nil) throws -> Digest {
        do {
            let stream = try open(file)
            while let piece = try stream.next() {
                try Cancellation.check()
                try writer.write(piece)
            }
            let digest = try writer.commit()
            if let declared, declared != digest { throw PackageError.mismatch(name ?? file.name, in: path) }
            return digest
        } catch {
            writer.cancel()
            throw error
        }
    }
}

extension PackageError {
    static func mismatch(_ name: String, in archive: FilePath) -> PackageError {
        PackageError(
            .digestMismatch, "the content does not match its digest in the list", archive: archive, member: name)
    }

    static func missing(_ name: String, in archive: FilePath) -> PackageError {
        PackageError(
            .missingBase,
            "neither the increment nor the installed version contains it: install a full package",
            archive: archive, member: name)
    }
}
