/// Writes bodies to files in `staging/`, their room reserved. Without state of its own: each file is its writer's.
final class Stager: EnginePart {
    let context: EngineContext
    private let ledger: Ledger
    private let staged: StagedFiles
    private let room: RoomMaker
    private let fullDisk: FullDisk

    init(
        context: EngineContext, ledger: Ledger, staged: StagedFiles, room: RoomMaker, fullDisk: FullDisk
    ) {
        self.context = context
        self.ledger = ledger
        self.staged = staged
        self.room = room
        self.fullDisk = fullDisk
    }

    /// A body that is staged, as it is stored.
    struct Form {
        let bytes: UnsafeRawBufferPointer
        var encoding = BodyEncoding.identity
        /// That of the body, to which an encrypted file is bound.
        let digest: () -> Digest
    }

    /// Writes a body to a new file in `staging/`, its room reserved.
    func stage(_ form: Form, for key: Key, isDurable: Bool) throws -> StagedFile {
        try fill(create(reserving: allocation(form), for: key), form, isDurable: isDurable)
    }

    /// As above, if its room is free: nil where other entries would have to go.
    func stageIfFree(_ form: Form, for key: Key, isDurable: Bool) throws -> StagedFile? {
        let reserved = allocation(form)
        guard try room.reserveIfFree(reserved, for: key) else { return nil }
        return try fill(create(reserved: reserved), form, isDurable: isDurable)
    }

    private func allocation(_ form: Form) -> Int64 {
        StagedFile.allocation(files.fileLength(Int64(form.bytes.count)))
    }

    private func fill(_ new: StagedFile, _ form: Form, isDurable: Bool) throws -> StagedFile {
        var file = new
        let bytes = form.bytes
        file.encoding = form.encoding
        return try staged.whileStaging {
            do {
                reach("stage.created")
                let created = file
                try fullDisk.writing(Int64(bytes.count), whole: created.descriptor, isStaging: true) {
                    try preallocate(created, from: 0, to: Int64(bytes.count))
                    try created.seal?.begin(created.descriptor)
                    try created.content.write(bytes, at: 0, path: files.path(of: created))
                    if created.seal != nil {
                        try created.content.finish(form.digest(), length: Int64(bytes.count), form.encoding)
                    }
                }
                file.length = Int64(bytes.count)
                reach("stage.written")
                try settle(&file, isDurable: isDurable)
                return file
            } catch {
                staged.discard(file)
                throw error
            }
        }
    }

    /// A new file in `staging/` with `bytes` of the budget.
    /// Where it is encrypted, its head is still to be written.
    func create(reserving bytes: Int64, for key: Key?) throws -> StagedFile {
        try room.reserve(bytes, for: key)
        return try create(reserved: bytes)
    }

    private func create(reserved bytes: Int64) throws -> StagedFile {
        let token = staged.nextToken()
        do {
            let descriptor = try open(token, bytes)
            var file = StagedFile(token: token, descriptor: descriptor, reserved: bytes, isOwn: true)
            file.seal = newSeal()
            return file
        } catch {
            ledger.add(-bytes)
            throw error
        }
    }

    /// What encrypts a new file; nil in a store that is not encrypted.
    func newSeal() -> BodySeal? { files.cipher.map { BodySeal($0) } }

    /// Makes the file. A file system without free inodes is also full (openat(2)): then an entry with its own file is
    /// displaced.
    /// - Parameters:
    ///   - bytes: the bytes that the file will take.
    ///   - isStaging: true inside `StagedFiles.whileStaging`.
    func open(_ token: StagingToken, _ bytes: Int64, isStaging: Bool = false) throws -> OwnedDescriptor {
        try fullDisk.writing(bytes, isStaging: isStaging) {
            try FileSystem.open(token.name, in: files.staging, flags: O_RDWR | O_CREAT | O_EXCL)
        }
    }

    /// Allocates blocks of a large file before they are written: then what it takes on disk, the list of its extents
    /// included, is known before the disk has it. Small files have one extent, and cost less without the call.
    func preallocate(_ file: StagedFile, from start: Int64, to end: Int64) throws {
        guard end >= 1 << 20, end > start else { return }
        let (start, end) = (files.fileLength(start), files.fileLength(end))
        _ = try FileSystem.preallocate(
            raw: file.descriptor.raw, offset: start, length: end - start, path: files.path(of: file))
    }

    /// Throws `io` where another program has cut a file while it was written. To be called before each write that
    /// follows another one, too: after it the file would have its length again, with zeros inside.
    /// - Parameter length: what was written.
    @discardableResult
    func requireWhole(_ file: StagedFile, to length: Int64) throws(LarderError) -> FileSystem.Status {
        let status = try FileSystem.status(file.descriptor, path: files.path(of: file))
        if status.size < file.content.writtenLength(length) {
            throw LarderError(.io, "the file of a body became shorter while it was written", path: files.path(of: file))
        }
        return status
    }

    /// Throws `io` where another program has removed the name of a file: there is nothing to publish then.
    private func requireName(_ file: StagedFile, _ status: FileSystem.Status) throws(LarderError) {
        // Some file systems count no links.
        if status.linkCount == 0, try FileSystem.status(file.token.name, in: files.staging) == nil {
            throw LarderError(.io, "the file of a body was removed while it was written", path: files.path(of: file))
        }
    }

    /// The file is complete: learns what it takes on disk, and makes the reservation just that.
    func settle(_ file: inout StagedFile, isDurable: Bool) throws {
        // A file of the caller's that is linked is the caller's to keep whole.
        var status =
            try file.isOwn
            ? requireWhole(file, to: file.length)
            : FileSystem.status(file.descriptor, path: files.path(of: file))
        try requireName(file, status)
        // Gives back what was allocated ahead and not written, by us or by the file system (XFS does so beyond the
        // end), or added by another program.
        let length = file.content.fileLength(file.length)
        if file.isOwn, status.size > length || status.allocated > Allocation.length(status) {
            try FileSystem.truncate(file.descriptor, to: length, path: files.path(of: file))
            status = try FileSystem.status(file.descriptor, path: files.path(of: file))
        }
        if isDurable {
            try Sync.data(file.descriptor, path: files.path(of: file))
            status = try FileSystem.status(file.descriptor, path: files.path(of: file))
        }
        file.allocated = Allocation.charge(status)
        ledger.add(file.allocated - file.reserved)
        file.reserved = file.allocated
        reach("stage.settled")
    }
}
