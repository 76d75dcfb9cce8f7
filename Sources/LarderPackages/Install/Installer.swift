import HTTPCaching
import Larder
import LarderHTTP

/// One installation. Its members are put beside everything else, under keys of a new generation (`PackageKeys`); one
/// commit makes the package name that generation instead of the earlier one.
///
/// A process that is killed leaves a generation that no package names. The next one that changes packages removes it
/// (`PackageRemains`).
final class Installer {
    private let store: Store
    private let contents: PackageContents
    private let options: InstallOptions
    private let previous: InstalledPackage?
    private let records: PackageRecords
    private let reach: (String) -> Void

    private var result: InstallResult
    private var batch: MemberBatch
    private var list: BodyWriter?
    private var lease: Lease?
    private var leased: ContinuousClock.Instant?
    private var progress: InstallProgress
    private var origins: Set<String> = []

    /// Of packages with more of them, readers look up every URL.
    private static let mostOrigins = 64

    private var package: InstalledPackage { result.package }

    init(
        _ store: Store, _ contents: PackageContents, _ options: InstallOptions, rules: CacheRules, name: String,
        previous: InstalledPackage?, at now: Timestamp, reach: @escaping (String) -> Void
    ) {
        self.store = store
        self.contents = contents
        self.options = options
        self.previous = previous
        self.reach = reach
        records = PackageRecords(store)
        let digits = String(UInt64.random(in: .min ... .max), radix: 16)
        let generation = String(repeating: "0", count: 16 - digits.count) + digits
        let archive = contents.archive
        result = InstallResult(
            package: InstalledPackage(
                name: name, version: contents.header?.version ?? "", mode: options.mode ?? previous?.mode ?? .members,
                source: options.source ?? archive.path.string, archiveDigest: archive.digest.hexadecimal,
                listDigest: "", created: contents.header?.created, installed: now.seconds, memberCount: 0,
                memberBytes: 0, dataCount: 0, dataBytes: 0, signer: contents.signer?.description,
                isTrusted: !options.trustedKeys.isEmpty, state: .installed, baseURL: options.baseURL,
                conflicts: options.conflicts,
                supersedes: options.conflicts == .replace ? now.microseconds / 1_000 : nil, id: generation))
        batch = MemberBatch(store, generation, previous, archive.path, options, rules)
        progress = InstallProgress(
            members: 0, totalMembers: archive.fileCount, bytes: 0, totalBytes: archive.totalBytes)
    }

    func run() throws -> InstallResult {
        let room = PackageRoom(store, contents, package, previous)
        try room.requireBase()
        batch.limit = try room.requireRoom()
        do {
            try begin()
            try stage()
            try commit()
        } catch {
            list?.cancel()
            // The commit may be done, and only its sync have failed.
            if try records.package(package.name)?.id != package.id { throw room.translated(error) }
            throw error
        }
        reach("install.committed")
        return result
    }

    private func begin() throws {
        if try !store.pinnedTags().contains(PackageKeys.recordTag) { try store.pin(reservedTag: PackageKeys.recordTag) }
        try store.put([], for: PackageKeys.row(package.id), PackageRecords.options)
        try store.flush()
        reach("install.begun")
        // The lease first: a pin without an owner is released.
        try renewLease()
        if package.mode != .members {
            try store.pin(reservedTag: PackageKeys.tag(package.id), while: PackageKeys.owner(package.id))
        }
        list = try store.writer(for: PackageKeys.list(package.id), PackageRecords.options)
    }

    /// Displacement must not take what cannot have been used yet. After a kill it may, some minutes later.
    private func renewLease() throws {
        if let leased, ContinuousClock.now - leased < .seconds(60) { return }
        let new = try store.lease(reservedTag: PackageKeys.tag(package.id), for: .seconds(600))
        (lease, leased) = (new, .now)
    }

    // MARK: Staging

    private func stage() throws {
        if let header = contents.headerLine { try append(header) }
        try contents.forEach { item in
            try Cancellation.check()
            switch item {
            case .response(let member): try stage(member)
            case .data(let data): try stage(data)
            }
        }
        try contents.requireResponses(after: previous)
        try writeBatch()
        result.ignored = contents.ignoredCount
        result.package.origins = origins.count > Self.mostOrigins ? nil : origins.sorted()
        (progress.members, progress.bytes) = (progress.totalMembers, progress.totalBytes)
        options.onProgress?(progress)
        if let previous { try countRemoved(previous) }
        let digest = try list?.commit()
        list = nil
        result.package.listDigest = (contents.listDigest ?? digest)?.hexadecimal ?? ""
        reach("install.staged")
    }

    private func stage(_ member: PlannedMember) throws {
        if let line = member.line { try append(line) }
        try batch.add(member, in: contents.archive)
        if case .archive(let file) = member.content { tell(file.length) }
        if origins.count <= Self.mostOrigins { origins.insert(PackageTable.origin(of: member.key.text)) }
        result.package.memberCount += 1
        result.package.memberBytes += member.length
        if batch.isFull { try writeBatch() }
    }

    private func writeBatch() throws {
        try renewLease()
        for line in try batch.write(&result) { try append(line) }
        reach("install.batch")
    }

    private func stage(_ data: PlannedData) throws {
        let key = PackageKeys.data(package.id, data.name)
        let digest: Digest
        switch data.content {
        case .archive(let file):
            digest = try contents.archive.write(
                file, data.digest, to: store.writer(for: key, PackageRecords.options, length: ByteCount(data.length)))
            tell(file.length)
        case .installed:
            guard let declared = data.digest, let previous,
                try store.peek(PackageKeys.data(previous.id, data.name))?.digest == declared
            else { throw PackageError.missing(data.name, in: contents.archive.path) }
            var batch = WriteBatch()
            batch.put(contentOf: declared, for: key, PackageRecords.options)
            guard try store.write(batch)[0].isSuccess else {
                throw PackageError.missing(data.name, in: contents.archive.path)
            }
            digest = declared
        }
        result.package.dataCount += 1
        result.package.dataBytes += data.length
        let line = MemberList.Line(data: data.name, sha256: digest.hexadecimal, size: data.length)
        try append(data.line ?? Array(line.line.utf8))
    }

    /// Counts the members that only the earlier version has.
    private func countRemoved(_ previous: InstalledPackage) throws {
        _ = try InstalledList(store, previous).forEach { line in
            guard let key = line.url.flatMap({ PackagedResponse.key(of: $0, rules: batch.rules) }) else { return }
            if !contents.has(key) { result.removed += 1 }
        }
    }

    private func append(_ line: [UInt8]) throws { try list?.write(line + [0x0A]) }

    private func tell(_ bytes: Int64) {
        progress.members += 1
        progress.bytes += bytes
        if progress.members % 64 == 0 { options.onProgress?(progress) }
    }

    // MARK: The commit

    private func commit() throws {
        // From here on nothing stops it.
        try Cancellation.check()
        try store.flush(.durable)
        reach("install.synced")
        var batch = WriteBatch()
        try records.put(records.all().filter { $0.name != package.name } + [package], &batch)
        if package.mode != .members {
            batch.put([], for: PackageKeys.owner(package.id), PackageRecords.ownerOptions(package.mode))
        }
        if let previous { batch.remove(PackageKeys.owner(previous.id)) }
        try store.write(batch, durability: .durable).throwIfFailed()
        // A lease that ended while one long member was read has let the pin go.
        let tag = PackageKeys.tag(package.id)
        if package.mode != .members, try !store.pinnedTags().contains(tag) {
            try store.pin(reservedTag: tag, while: PackageKeys.owner(package.id))
        }
        lease = nil
    }
}
