import HTTPCaching
import Larder
import LarderHTTP

/// One installation, from the archive to the commit that makes its members visible.
///
/// 1. A row says that there is an installation (`Installation`).
/// 2. Each member is read, compared with its digest, and stored so that no reader takes it (`StoredMember`). What it is
///    to replace stays where it is, and is found until the commit.
/// 3. Everything is synced; then one commit changes the row and the record of the package.
/// 4. The members get their lasting form (`Settling`). Readers have seen all of them since the commit.
///
/// A process that is killed before the commit leaves nothing that a reader finds, and the next installation takes it
/// away; one that is killed after it leaves a package that is whole, and that the next installation settles.
final class Installer {
    private let store: Store
    private let contents: PackageContents
    private let options: InstallOptions
    private let rules: CacheRules
    private let installation: Installation
    private let previous: InstalledPackage?
    private let reach: (String) -> Void

    private var result: InstallResult
    private var lease: Lease?
    private var leased: ContinuousClock.Instant?
    private var waiting: [Waiting] = []
    private var waitingBytes = 0
    private var list: BodyWriter?
    private var listDigest: Digest?
    private var progress: InstallProgress

    /// A member that was read, and waits for the commit of its batch.
    private struct Waiting {
        let member: PlannedMember
        let body: Content

        enum Content {
            case bytes([UInt8])
            /// Written already, under a key of its own.
            case written(Digest)
            /// In the store, if the installed version has it.
            case installed
        }
    }

    /// Members that one commit takes, and bytes of their bodies.
    private static let batchCount = 256
    private var batchBytes = 4 << 20
    /// Longer bodies are written as they are read.
    private static let longBody: Int64 = 256 << 10

    init(
        _ store: Store, _ contents: PackageContents, _ options: InstallOptions, rules: CacheRules, name: String,
        previous: InstalledPackage?, at now: Timestamp, reach: @escaping (String) -> Void
    ) throws {
        self.store = store
        self.contents = contents
        self.options = options
        self.rules = rules
        self.previous = previous
        self.reach = reach
        let mode = options.mode ?? previous?.mode ?? .members
        let digits = String(UInt64.random(in: .min ... .max), radix: 16)
        installation = Installation(
            id: String(repeating: "0", count: 16 - digits.count) + digits, name: name, mode: mode,
            previousID: previous?.id,
            wasPinned: try store.pinnedTags().contains(PackageKeys.tag(name)))
        let archive = contents.archive
        result = InstallResult(
            package: InstalledPackage(
                name: name, version: contents.header?.version ?? "", mode: mode,
                source: options.source ?? archive.path.string, archiveDigest: archive.digest.hexadecimal,
                listDigest: "", created: contents.header?.created, installed: now.seconds, memberCount: 0,
                memberBytes: 0, dataCount: 0, dataBytes: 0, signer: contents.signer?.description,
                isTrusted: !options.trustedKeys.isEmpty, state: .installed, baseURL: options.baseURL,
                id: installation.id))
        progress = InstallProgress(
            members: 0, totalMembers: archive.fileCount, bytes: 0, totalBytes: archive.totalBytes)
    }

    func run() throws -> InstallResult {
        try requireMembers()
        try requireBase()
        try requireRoom()
        defer { lease = nil }
        do {
            try begin()
            try stage()
            try commit()
        } catch {
            list?.cancel()
            try end(after: error)
        }
        reach("install.committed")
        // The members are visible. What cannot be settled now, the next installation settles; readers do not notice.
        Cancellation.masked { try? Settling(store: store).finish(installation) }
        return result
    }

    /// Undoes the installation, unless it was committed and only its sync failed; throws why it ended.
    private func end(after error: any Error) throws -> Never {
        Cancellation.masked {
            let row = try? store.get(installation.row, includingExpired: true)
            // What cannot be undone now, the next installation undoes.
            if StoredMember.isInstalled(row ?? nil) {
                try? Settling(store: store).finish(installation)
            } else {
                try? Settling(store: store).undo(installation)
            }
        }
        throw translated(error)
    }

    /// Displacement must not take what cannot have been used yet. After a kill it may, some minutes later.
    private func renewLease() throws {
        if let leased, ContinuousClock.now - leased < .seconds(60) { return }
        let new = try store.lease(reservedTag: installation.tag, for: .seconds(600))
        (lease, leased) = (new, .now)
    }

    /// A store without room means that the package does not fit.
    private func translated(_ error: any Error) -> any Error {
        guard let error = error as? LarderError, [.noSpace, .tooLarge, .mapFull].contains(error.code) else {
            return error
        }
        return PackageError(
            .exceedsBudget, "the package does not fit in the store", archive: contents.archive.path, cause: error)
    }

    // MARK: Before anything is written

    /// Refuses an empty package, for example from a crawl without a network: it would remove every member.
    private func requireMembers() throws {
        guard let previous, previous.memberCount > 0, contents.header?.members == 0 else { return }
        throw PackageError(
            .badManifest,
            "the package is empty and would remove every member of '\(previous.name)': remove that instead",
            archive: contents.archive.path, member: MemberList.fileName)
    }

    private func requireBase() throws {
        guard let base = contents.header?.base else { return }
        let path = contents.archive.path
        guard let previous, previous.state == .installed else {
            throw PackageError(
                .missingBase, "it is an increment of version '\(base.version)', but the package is not installed",
                archive: path)
        }
        if previous.listDigest != base.list {
            throw PackageError(
                .missingBase,
                "it is an increment of version '\(base.version)', but version '\(previous.version)' is installed, "
                    + "or a different package with that version",
                archive: path)
        }
    }

    private func requireRoom() throws {
        let budget = try store.budget()
        let files = contents.archive
        var needed = files.totalBytes + Int64(files.fileCount) * InstalledPackage.rowBytes
        // Of an increment most is in the store.
        if contents.header?.base != nil, let previous { needed += previous.room }
        // What is stored may be displaced for it, but no more.
        let disk = try store.freeDiskBytes() + store.statistics().allocatedBytes.bytes
        if needed > disk {
            throw PackageError(
                .exceedsBudget, "the package needs \(needed) bytes with its rows, but the disk has room for \(disk)",
                archive: files.path)
        }
        if budget.bytes == .unlimited { return }
        // One commit must fit beside what is pinned.
        batchBytes = Int(clamping: min(4 << 20, max(64 << 10, budget.usableBytes / 16)))
        let taken = try PackageRecords(store).all().filter { $0.mode == .pin && $0.name != installation.name }
            .reduce(0) { $0 + $1.room }
        if needed + taken <= budget.usableBytes { return }
        let others = taken == 0 ? "" : ", and other pinned packages use \(taken) bytes"
        throw PackageError(
            .exceedsBudget,
            "the package needs \(needed) bytes with its rows\(others); the store's budget allows \(budget.usableBytes)",
            archive: contents.archive.path)
    }

    private func begin() throws {
        if try !store.pinnedTags().contains(PackageKeys.ownTag) { try store.pin(reservedTag: PackageKeys.ownTag) }
        try store.put(
            Installation.encode(installation), for: installation.row,
            Installation.ownOptions(StoredMember.staging))
        try store.flush()
        reach("install.begun")
        if installation.mode != .members, !installation.wasPinned { try store.pin(reservedTag: installation.tag) }
        try renewLease()
        // Of an earlier version that was displaced: it would take the new members for its own.
        try store.remove(Store.remains(of: installation.tag))
        list = try store.writer(for: PackageKeys.list(installation.id), Installation.ownOptions())
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
        try writeWaiting()
        result.ignored = contents.ignoredCount
        (progress.members, progress.bytes) = (progress.totalMembers, progress.totalBytes)
        options.onProgress?(progress)
        if previous != nil { try removeLeaving() }
        listDigest = try list?.commit()
        list = nil
        reach("install.staged")
    }

    private func stage(_ member: PlannedMember) throws {
        if let line = member.line { try append(line) }
        switch member.content {
        case .installed:
            waiting.append(Waiting(member: member, body: .installed))
            // The lookup of the entry may bring its bytes.
            waitingBytes += Int(clamping: min(member.length, Self.longBody))
        case .archive(let file) where member.length > Self.longBody:
            waiting.append(Waiting(member: member, body: .written(try write(file, member))))
            tell(file.length)
        case .archive(let file):
            let bytes = try contents.archive.bytes(file, limit: Int(Self.longBody))
            if let digest = member.digest, digest != Digest.of(bytes) { throw mismatch(member.url) }
            waiting.append(Waiting(member: member, body: .bytes(bytes)))
            waitingBytes += bytes.count
            tell(file.length)
        }
        waitingBytes += member.line?.count ?? 200
        result.package.memberCount += 1
        result.package.memberBytes += member.length
        if waiting.count >= Self.batchCount || waitingBytes >= batchBytes { try writeWaiting() }
    }

    private func mismatch(_ name: String) -> PackageError {
        PackageError(
            .digestMismatch, "the content does not match its digest in the list",
            archive: contents.archive.path, member: name)
    }

    private func tell(_ bytes: Int64) {
        progress.members += 1
        progress.bytes += bytes
        if progress.members % 64 == 0 { options.onProgress?(progress) }
    }

    /// The member's record, as it is when the installation is over.
    private func record(_ member: PlannedMember) -> [UInt8] {
        PackagedResponse(head: member.head, date: member.date, length: member.length, rules: rules).metadata
    }

    private func stagedOptions(_ member: PlannedMember) -> PutOptions {
        PutOptions(
            lifetime: .never, tags: [installation.tag],
            metadata: StoredMember(.added, row: installation.row, inner: record(member)).encoded
        ).withReservedNames
    }

    private func shadowKey(_ key: Key) -> Key {
        StoredMember(.replaced, row: installation.row, inner: []).shadowKey(of: key)
    }

    /// Writes a long body next to its final place.
    private func write(_ file: ZipReader.Member, _ member: PlannedMember) throws -> Digest {
        let writer = try store.writer(
            for: shadowKey(member.key), stagedOptions(member), length: ByteCount(member.length))
        do {
            let stream = try contents.archive.open(file)
            while let piece = try stream.next() { try writer.write(piece) }
            let digest = try writer.commit()
            if let declared = member.digest, declared != digest { throw mismatch(member.url) }
            return digest
        } catch {
            writer.cancel()
            throw error
        }
    }

    private func stage(_ data: PlannedData) throws {
        let key = PackageKeys.data(installation.id, data.name)
        let options = Installation.ownOptions()
        var digest = data.digest
        switch data.content {
        case .archive(let file):
            let writer = try store.writer(for: key, options, length: ByteCount(data.length))
            do {
                let stream = try contents.archive.open(file)
                while let piece = try stream.next() { try writer.write(piece) }
                let found = try writer.commit()
                if let digest, digest != found { throw mismatch(data.name) }
                digest = found
            } catch {
                writer.cancel()
                throw error
            }
            tell(file.length)
        case .installed:
            guard let declared = data.digest, let previous,
                try store.get(PackageKeys.data(previous.id, data.name), includingExpired: true)?.digest == declared
            else { throw missing(data.name) }
            var batch = WriteBatch()
            batch.put(contentOf: declared, for: key, options)
            guard try store.write(batch)[0].isSuccess else { throw missing(data.name) }
        }
        result.package.dataCount += 1
        result.package.dataBytes += data.length
        if let line = data.line {
            try append(line)
        } else if let digest {
            let line = MemberList.Line(data: data.name, sha256: digest.hexadecimal, size: data.length)
            try append(Array(line.line.utf8))
        }
    }

    private func missing(_ name: String) -> PackageError {
        PackageError(
            .missingBase,
            "neither the increment nor the installed version contains it: install a full package",
            archive: contents.archive.path, member: name)
    }

    private func append(_ line: [UInt8]) throws { try list?.write(line + [0x0A]) }

    // MARK: Batches

    private func writeWaiting() throws {
        try renewLease()
        var members = waiting
        (waiting, waitingBytes) = ([], 0)
        // A response that comes over the network meanwhile is looked at like one that was there.
        for _ in 0..<4 where !members.isEmpty { members = try write(members) }
        result.kept += members.count
        reach("install.batch")
    }

    /// The decision about a member.
    private enum Decision {
        case add
        case replace(Entry, Attributes)
        case keep
        case unchanged
        case missing
    }

    /// Writes a batch; returns those whose place was taken meanwhile.
    private func write(_ members: [Waiting]) throws -> [Waiting] {
        let entries = try store.get(members.map(\.member.key), includingExpired: true)
        var batch = WriteBatch()
        // The operation that tells what was done with a member.
        var checks: [(member: Int, operation: Int, Decision)] = []
        var digests: [Digest?] = Array(repeating: nil, count: members.count)
        // Members that were written beside their place, and are not to go there.
        var unneeded: [Int] = []
        for (index, (waiting, entry)) in zip(members, entries).enumerated() {
            let (decision, digest) = try decide(waiting, entry)
            digests[index] = digest
            let member = waiting.member
            switch decision {
            case .keep:
                result.kept += 1
                unneeded.append(index)
            case .unchanged:
                result.unchanged += 1
                unneeded.append(index)
            case .missing:
                // What displacement took is not brought back by an increment.
                guard installation.mode == .members else { throw missing(member.url) }
                result.missing += 1
            case .add:
                checks.append((index, batch.count, decision))
                add(waiting, to: member.key, &batch)
            case .replace(let entry, let known):
                checks.append((index, batch.count, decision))
                retire(entry, known, .replaced, &batch)
                add(waiting, to: shadowKey(member.key), &batch)
            }
        }
        let results = batch.isEmpty ? [] : try store.write(batch)
        try results.throwIfFailed()
        var taken: [Waiting] = []
        var surplus = WriteBatch()
        for (member, operation, decision) in checks {
            switch (results[operation], decision) {
            case (.stored, .add):
                result.added += 1
                // In its place now.
                if case .written = members[member].body { surplus.remove(shadowKey(members[member].member.key)) }
            case (.done, .replace): result.replaced += 1
            case (.absent, .add): throw missing(members[member].member.url)
            default:
                taken.append(members[member])
                digests[member] = nil
            }
        }
        for index in unneeded {
            if case .written = members[index].body { surplus.remove(shadowKey(members[index].member.key)) }
        }
        if !surplus.isEmpty { try store.write(surplus).throwIfFailed() }
        for (waiting, digest) in zip(members, digests) {
            if waiting.member.line == nil, let digest { try append(line(waiting.member, digest)) }
        }
        return taken
    }

    private func line(_ member: PlannedMember, _ digest: Digest) -> [UInt8] {
        let line = MemberList.Line(
            url: member.url, sha256: digest.hexadecimal, size: member.length,
            fields: member.head.headerFields.map { [$0.name.rawName, $0.value] })
        return Array(line.line.utf8)
    }

    private func add(_ waiting: Waiting, to key: Key, _ batch: inout WriteBatch) {
        let options = stagedOptions(waiting.member)
        let isPlace = key == waiting.member.key
        switch waiting.body {
        case .bytes(let bytes): batch.put(bytes, for: key, options, unlessPresent: isPlace)
        // Beside its place it is already.
        case .written(let digest): if isPlace { batch.put(contentOf: digest, for: key, options, unlessPresent: true) }
        case .installed:
            if let digest = waiting.member.digest {
                batch.put(contentOf: digest, for: key, options, unlessPresent: isPlace)
            }
        }
    }

    /// Marks what is to go with the commit.
    private func retire(_ entry: Entry, _ known: Attributes, _ role: StoredMember.Role, _ batch: inout WriteBatch) {
        // With the tag the lease of the installation protects it, too.
        let borrows =
            !known.tags.contains(installation.tag) && known.storagePolicy != .memoryOnly
            && PutOptions.canHold(tags: known.tags + [installation.tag])
        batch.update(
            entry,
            EntryChange(
                metadata: StoredMember(
                    role, hasBorrowedTag: borrows, row: installation.row, inner: entry.metadata
                ).encoded,
                tags: borrows ? known.tags + [installation.tag] : nil
            ).withReservedNames)
    }

    /// Decides about a member, and returns its digest.
    private func decide(_ waiting: Waiting, _ entry: Entry?) throws -> (Decision, Digest) {
        let member = waiting.member
        let digest: Digest
        switch waiting.body {
        case .bytes(let bytes): digest = member.digest ?? Digest.of(bytes)
        case .written(let written): digest = written
        case .installed: digest = member.digest ?? Digest.of([])
        }
        guard let entry else {
            if case .installed = waiting.body { return (.missing, digest) }
            return (.add, digest)
        }
        if case .installed = waiting.body, entry.digest == digest, entry.body.length.bytes != member.length {
            throw PackageError(
                .digestMismatch,
                "the content is \(entry.body.length.bytes) bytes long; the list says \(member.length)",
                archive: contents.archive.path, member: member.url)
        }
        let known = entry.attributes
        let isOwn = known.tags.contains(installation.tag)
        let old = PackagedResponse.read(entry.metadata)
        if isOwn, entry.digest == digest, let old, isSettled(entry.metadata) {
            // The origin may have confirmed it since: then it is newer than the package.
            let isConfirmed =
                options.conflicts == .keepNewer && old.responseTime > installedBefore
                && old.responseTime > (member.stated ?? installedBefore)
            if isConfirmed || isSame(old, member) { return (.unchanged, digest) }
        }
        if isOwn {
            if case .installed = waiting.body, entry.digest != digest { return (.missing, digest) }
            return (.replace(entry, known), digest)
        }
        // Of a package that was displaced as a whole: no reader finds it.
        if let other = StoredMember(entry.metadata), other.role == .added,
            !StoredMember.isInstalled(try store.get(other.row, includingExpired: true))
        {
            if case .installed = waiting.body { return (.missing, digest) }
            return (.replace(entry, known), digest)
        }
        if case .installed = waiting.body { return (.keep, digest) }
        switch options.conflicts {
        case .keepExisting: return (.keep, digest)
        case .replace: return (.replace(entry, known), digest)
        case .keepNewer:
            guard let old else {
                // Several responses under one URL, or nothing that came by HTTP: not ours to judge.
                return (.keep, digest)
            }
            return (isNewer(old, than: member) ? .keep : .replace(entry, known), digest)
        }
    }

    /// Whether an entry has the form that the members of this installation have when it is over.
    private func isSettled(_ metadata: [UInt8]) -> Bool {
        let member = StoredMember(metadata)
        return installation.mode == .whole ? member?.row == installation.leader : member == nil
    }

    /// Whether the fields are the same. A `Date` that the package does not give does not count.
    private func isSame(_ old: StoredResponse, _ member: PlannedMember) -> Bool {
        guard let new = PackagedResponse.read(record(member)) else { return false }
        if member.hasOwnDate { return old.head == new.head }
        var (left, right) = (old.head, new.head)
        left.headerFields[.date] = nil
        right.headerFields[.date] = nil
        return left == right
    }

    /// Whether what is stored is newer than the package's, or as new.
    private func isNewer(_ old: StoredResponse, than member: PlannedMember) -> Bool {
        guard let new = PackagedResponse.read(record(member)) else { return true }
        if old.isInvalidated { return false }
        let (left, right) = (old.policy, new.policy)
        // What the origin has said last counts while it is fresh. AFCache's manifests do not say when they were made.
        let isLater = member.stated.map { left.responseTime >= $0 } ?? true
        if isLater, left.freshUntil > contents.now { return true }
        if left.flags.contains(.hasLastModified), right.flags.contains(.hasLastModified),
            left.lastModified != right.lastModified
        {
            return left.lastModified > right.lastModified
        }
        if let stated = member.stated, left.date != stated { return left.date > stated }
        return left.freshUntil >= right.freshUntil
    }

    /// When the earlier version was installed.
    private var installedBefore: Instant {
        Instant(milliseconds: previous.map { Int64(clamping: Int($0.installed * 1_000)) } ?? .max)
    }

    // MARK: The earlier version

    /// Marks what the earlier version has and this one does not.
    private func removeLeaving() throws {
        var found: [Key] = []
        func mark() throws {
            var batch = WriteBatch()
            for entry in try store.get(found, includingExpired: true) {
                guard let entry else { continue }
                let known = entry.attributes
                guard known.tags.contains(installation.tag), StoredMember(entry.metadata)?.row != installation.row
                else { continue }
                retire(entry, known, .leaving, &batch)
                result.removed += 1
            }
            found = []
            if !batch.isEmpty { try store.write(batch).throwIfFailed() }
        }
        try store.forEach(.tag(installation.tag)) { entry in
            guard StoredMember(entry.metadata)?.row != installation.row, !contents.has(entry.key) else { return }
            found.append(entry.key)
            if found.count == 64 { try mark() }
        }
        try mark()
    }

    // MARK: The commit

    private func commit() throws {
        result.package.listDigest = (contents.listDigest ?? listDigest)?.hexadecimal ?? ""
        // From here on nothing stops it.
        try Cancellation.check()
        try store.flush(.durable)
        reach("install.synced")
        var batch = WriteBatch()
        batch.put(
            try Installation.encode(installation), for: installation.row,
            Installation.ownOptions(StoredMember.installed))
        batch.put(
            try Installation.encode(result.package), for: PackageKeys.record(installation.name),
            Installation.ownOptions())
        if installation.mode == .whole {
            batch.put(
                [], for: installation.leader,
                PutOptions(
                    lifetime: .never, tags: [Store.leaderTag(of: installation.tag)],
                    metadata: StoredMember.installed
                ).withReservedNames)
        }
        try store.write(batch, durability: .durable).throwIfFailed()
    }
}
