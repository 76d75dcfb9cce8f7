import CZip
import Larder
import SystemPackage

/// An archive that is open for reading. Used by one thread at a time.
///
/// All members are looked at when it is opened, and an archive that has a bad one is not read: see
/// ``PackageError/Code``.
final class ZipReader {
    /// The entry of a member in the directory of the archive.
    struct Member {
        let index: UInt64
        let name: String
        /// Bytes, unpacked.
        let length: Int64
        let isEncrypted: Bool
        /// In seconds since 1970; zip knows no time zone, so it is that of this machine.
        let modified: Int
        /// Encrypted without a CRC-32 that libzip needs.
        let lacksChecksum: Bool
    }

    let path: FilePath
    let limits: ArchiveLimits
    private let password: String?
    private let file: FileDescriptor
    /// The archive's own digest and length.
    let digest: Digest
    let length: Int64
    private let zip: OpaquePointer
    /// The member of each name, by a hash of it.
    private var places: [Int: UInt32] = [:]
    /// Members that are encrypted as AE-2, without a CRC-32.
    private var unchecked: Set<UInt64> = []
    /// Files in it.
    private(set) var fileCount = 0
    /// Bytes of all files, unpacked.
    private(set) var totalBytes: Int64 = 0

    init(_ path: FilePath, password: String?, limits: ArchiveLimits) throws {
        self.path = path
        self.limits = limits
        self.password = password
        do {
            // A pipe that no one writes to must not hold us up.
            file = try FileDescriptor.open(path, .readOnly, options: [.closeOnExec, .nonBlocking])
        } catch {
            throw PackageError(.io, "the archive cannot be opened", archive: path, cause: error)
        }
        do {
            (digest, length) = try Self.digest(of: file, path)
            if let count = try ArchiveTail.memberCount(file, length: length), count > UInt64(limits.members) {
                throw PackageError(
                    .tooLarge, "the archive claims \(count) members; the limit is \(limits.members)", archive: path)
            }
            zip = try Self.open(file, path)
        } catch let objection as ArchiveDirectory.Objection {
            try? file.close()
            throw Self.refusal(objection, path)
        } catch {
            try? file.close()
            throw error as? PackageError
                ?? PackageError(.io, "the archive cannot be read", archive: path, cause: error)
        }
        try check()
    }

    deinit {
        zip_discard(zip)
        try? file.close()
    }

    /// Opens the archive behind a descriptor, which stays the caller's: the file that was looked at is the one that is
    /// read.
    private static func open(_ file: FileDescriptor, _ path: FilePath) throws -> OpaquePointer {
        let copy = fcntl(file.rawValue, F_DUPFD_CLOEXEC, 0)
        guard copy >= 0, let stream = fdopen(copy, "rb") else { throw Errno(rawValue: errno) }
        var error = zip_error_t()
        zip_error_init(&error)
        defer { zip_error_fini(&error) }
        // It closes the stream when it is freed.
        guard let source = zip_source_filep_create(stream, 0, -1, &error) else {
            fclose(stream)
            throw ZipFailure.error(&error, path)
        }
        guard let zip = zip_open_from_source(source, ZIP_RDONLY, &error) else {
            zip_source_free(source)
            throw ZipFailure.error(&error, path)
        }
        return zip
    }

    private static func digest(of file: FileDescriptor, _ path: FilePath) throws -> (Digest, Int64) {
        var status = stat()
        guard fstat(file.rawValue, &status) == 0 else { throw Errno(rawValue: errno) }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw PackageError(.notAnArchive, "it is not a file", archive: path)
        }
        var hash = IncrementalDigest()
        var offset: Int64 = 0
        var buffer = [UInt8](repeating: 0, count: 1 << 18)
        while true {
            try Cancellation.check()
            let count = try buffer.withUnsafeMutableBytes { try file.read(fromAbsoluteOffset: offset, into: $0) }
            if count == 0 { break }
            buffer.withUnsafeBytes { hash.update(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
            offset += Int64(count)
        }
        return (hash.finalize(), offset)
    }

    // MARK: Members

    private static func refusal(_ objection: ArchiveDirectory.Objection, _ path: FilePath) -> PackageError {
        PackageError(
            objection.code, objection.message, archive: path,
            member: objection.member.map { String(decoding: $0, as: UTF8.self) })
    }

    /// Looks at all members, and compares what libzip has read with the directory.
    private func check() throws {
        do {
            let directory = try ArchiveDirectory(file, length: length)
            guard directory.count == UInt64(max(0, zip_get_num_entries(zip, 0))) else {
                throw ArchiveDirectory.Objection("it has two directories")
            }
            places.reserveCapacity(Int(directory.count))
            try directory.forEach { index, entry in
                if index % 4_096 == 0 { try Cancellation.check() }
                try check(index, entry)
            }
        } catch let objection as ArchiveDirectory.Objection {
            throw Self.refusal(objection, path)
        } catch let error as Errno {
            throw PackageError(.io, "the archive cannot be read", archive: path, cause: error)
        }
        let limit = Int64(clamping: limits.ratio).multipliedReportingOverflow(by: length)
        if totalBytes > ArchiveLimits.smallBytes, !limit.overflow, totalBytes > limit.partialValue {
            throw PackageError(
                .tooLarge,
                "it unpacks to \(totalBytes) bytes, which is more than \(limits.ratio) times its own \(length)",
                archive: path)
        }
    }

    private func check(_ index: UInt64, _ listed: ArchiveDirectory.Entry) throws {
        let name = try rawName(index)
        let text = String(decoding: name, as: UTF8.self)
        let entry = try status(index, text)
        guard try zipName(index) == listed.name, entry.size == listed.length, entry.comp_size == listed.packedLength
        else { throw ArchiveDirectory.Objection("it has two directories") }
        // The folder itself, as bsdtar(1) has it.
        if name.isEmpty, listed.name == Array("./".utf8), entry.size == 0 { return }
        if let objection = MemberName.objection(name) {
            throw PackageError(
                .unsafeName, objection, archive: path, member: String(decoding: listed.name, as: UTF8.self))
        }
        let isDirectory = name.last == UInt8(ascii: "/")
        try requireFile(index, text, isDirectory: isDirectory)
        if places.updateValue(UInt32(index), forKey: name.hashValue) != nil {
            throw PackageError(.duplicate, "two members have this name", archive: path, member: text)
        }
        if isDirectory {
            if entry.size == 0 { return }
            throw PackageError(.notAFile, "the member is a directory with content", archive: path, member: text)
        }
        if entry.size > UInt64(limits.memberBytes.bytes) {
            throw PackageError(
                .tooLarge, "the member has \(entry.size) bytes; the limit is \(limits.memberBytes.bytes)",
                archive: path, member: text)
        }
        // A libzip that knows better says that such a CRC-32 is not valid.
        if listed.aesVersion == 2, listed.crc == 0, entry.valid & UInt64(ZIP_STAT_CRC) != 0, entry.size >= 20 {
            unchecked.insert(index)
        }
        fileCount += 1
        let total = totalBytes.addingReportingOverflow(Int64(clamping: entry.size))
        totalBytes = total.partialValue
        if total.overflow || totalBytes > limits.totalBytes.bytes {
            throw PackageError(
                .tooLarge, "the members have more than \(limits.totalBytes.bytes) bytes", archive: path)
        }
    }

    /// The name without the `./` that some programs write in front of it.
    private func rawName(_ index: UInt64) throws -> [UInt8] {
        var name = try zipName(index)[...]
        while name.starts(with: "./".utf8) { name = name.dropFirst(2) }
        return Array(name)
    }

    private func zipName(_ index: UInt64) throws -> [UInt8] {
        guard let name = zip_get_name(zip, index, UInt32(ZIP_FL_ENC_RAW)) else {
            throw ZipFailure.error(zip_get_error(zip), path, "member \(index)")
        }
        return Array(UnsafeRawBufferPointer(start: name, count: strlen(name)))
    }

    private func status(_ index: UInt64, _ name: String) throws -> zip_stat_t {
        var status = zip_stat_t()
        zip_stat_init(&status)
        guard zip_stat_index(zip, index, 0, &status) == 0 else {
            throw ZipFailure.error(zip_get_error(zip), path, name)
        }
        return status
    }

    /// Links, devices and directories without a slash are refused: their kind is in the upper half of the attributes
    /// where the archive comes from a Unix system.
    private func requireFile(_ index: UInt64, _ name: String, isDirectory: Bool) throws {
        var system: UInt8 = 0
        var attributes: UInt32 = 0
        guard zip_file_get_external_attributes(zip, index, 0, &system, &attributes) == 0 else { return }
        // Unix, and macOS as `ditto` calls itself.
        guard Int32(system) == ZIP_OPSYS_UNIX || Int32(system) == ZIP_OPSYS_OS_X else { return }
        let kind = mode_t(attributes >> 16) & S_IFMT
        if kind == 0 || kind == (isDirectory ? S_IFDIR : S_IFREG) { return }
        throw PackageError(
            .notAFile, kind == S_IFLNK ? "the member is a symbolic link" : "the member is not a file", archive: path,
            member: name)
    }

    /// The member of a name; nil if there is none.
    func member(_ name: String) throws -> Member? {
        let bytes = Array(name.utf8)
        guard bytes.last != UInt8(ascii: "/"), let place = places[bytes.hashValue],
            try rawName(UInt64(place)) == bytes
        else { return nil }
        return try member(at: UInt64(place))
    }

    /// Runs `body` on all files, in the order of the archive.
    func forEach(_ body: (Member) throws -> Void) throws {
        for index in 0..<UInt64(max(0, zip_get_num_entries(zip, 0))) {
            if let last = try rawName(index).last, last != UInt8(ascii: "/") { try body(member(at: index)) }
        }
    }

    private func member(at index: UInt64) throws -> Member {
        let name = String(decoding: try rawName(index), as: UTF8.self)
        let entry = try status(index, name)
        return Member(
            index: index, name: name, length: Int64(clamping: entry.size),
            isEncrypted: entry.encryption_method != UInt16(ZIP_EM_NONE), modified: entry.mtime,
            lacksChecksum: unchecked.contains(index))
    }

    // MARK: Bytes

    /// Opens a member for reading.
    func open(_ member: Member) throws -> MemberStream {
        if member.lacksChecksum {
            throw PackageError(
                .unsupported,
                "the member is encrypted as AE-2, as 7-Zip does, without the checksum that libzip needs: encrypt the "
                    + "archive with 'cachectl package create' or 'tools/afcpkg.py'", archive: path, member: member.name)
        }
        guard let stream = zip_fopen_index_encrypted(zip, member.index, 0, password) else {
            throw ZipFailure.error(zip_get_error(zip), path, member.name)
        }
        return MemberStream(stream, member, of: self)
    }

    /// All bytes of a member of at most `limit` bytes.
    func bytes(_ member: Member, limit: Int) throws -> [UInt8] {
        if member.length > Int64(limit) {
            throw PackageError(
                .tooLarge, "the member has \(member.length) bytes; the limit is \(limit)", archive: path,
                member: member.name)
        }
        let stream = try open(member)
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Int(member.length))
        while let piece = try stream.next() { bytes += piece }
        return bytes
    }
}

/// The bytes of one member, unpacked piece by piece. libzip compares the CRC-32 at the end.
final class MemberStream {
    private let stream: OpaquePointer
    private let member: ZipReader.Member
    /// Kept open for as long as this.
    private let archive: ZipReader
    private var count: Int64 = 0
    private var buffer = [UInt8](repeating: 0, count: 1 << 16)

    fileprivate init(
        _ stream: OpaquePointer, _ member: ZipReader.Member, of archive: ZipReader
    ) {
        self.stream = stream
        self.member = member
        self.archive = archive
    }

    deinit { zip_fclose(stream) }

    /// The next piece, at most 64 KiB; nil at the end.
    func next() throws -> ArraySlice<UInt8>? {
        try Cancellation.check()
        let got = buffer.withUnsafeMutableBytes { zip_fread(stream, $0.baseAddress, UInt64($0.count)) }
        if got < 0 { throw ZipFailure.error(zip_file_get_error(stream), archive.path, member.name) }
        count += got
        if count > member.length {
            throw PackageError(
                .tooLarge, "the member is longer than the \(member.length) bytes that the archive declares",
                archive: archive.path, member: member.name)
        }
        if got > 0 { return buffer[..<Int(got)] }
        if count < member.length {
            throw PackageError(
                .damagedMember, "the member has \(count) of \(member.length) bytes", archive: archive.path,
                member: member.name)
        }
        return nil
    }
}
