import HTTPCaching
import Larder
import LarderHTTP
import Logging
import SystemPackage

/// The packages of a store: zip archives of responses, which fill an HTTP cache before it has contacted any origin.
///
///     let packages = PackageStore(store)
///     try await packages.install("maps.zip")
///     let answer = try await cache.fetch("https://maps.example/7/1.png", FetchOptions(isOffline: true))
///
/// One commit makes an installation visible to every process that has the store open: all members or none, even if the
/// process is killed. Members are stored beside the responses that came over the network, and an `HTTPCache` over the
/// same store answers with them where it has nothing fresh.
///
/// You can create this value again at any time, because all state is in the store. A store runs one installation or
/// removal at a time, across processes; a second one throws ``PackageError/Code/busy``.
public struct PackageStore: Sendable {
    private let store: Store
    private let rules: CacheRules
    private let clock: any StoreClock
    private let logger: Logger
    /// Called with the steps, for tests.
    private let reach: @Sendable (String) -> Void

    /// The packages of a store.
    ///
    /// - Parameters:
    ///   - store: an open store, which stays the caller's to close.
    ///   - caching: the rules of the cache that answers with the members. Default: those of a private cache.
    ///   - clock: the source of the time. Default: the machine's clock.
    ///   - logger: logs installations and removals, at level debug. Default: one labelled `larder.packages`.
    public init(
        _ store: Store, caching: CachingOptions = .privateCache, clock: any StoreClock = SystemClock(),
        logger: Logger = Logger(label: "larder.packages")
    ) {
        self.init(store, caching: caching, clock: clock, logger: logger) { _ in }
    }

    package init(
        _ store: Store, caching: CachingOptions = .privateCache, clock: any StoreClock = SystemClock(),
        logger: Logger = Logger(label: "larder.packages"), reach: @escaping @Sendable (String) -> Void
    ) {
        self.store = store
        rules = CacheRules(caching)
        self.clock = clock
        self.logger = logger
        self.reach = reach
    }

    /// The key of a URL's response in the store; nil for a URL that cannot have a stored response.
    ///
    /// - Parameter url: absolute, with `http` or `https`.
    public static func key(of url: String) -> Key? { PackagedResponse.key(of: url, rules: CacheRules()) }

    /// Tells if an entry belongs to a package: a record about it, or a member.
    ///
    /// - Parameter entry: any entry of a store.
    public static func isOwn(_ entry: Attributes) -> Bool {
        entry.key.hasPrefix("larder:") || FormerPackages.isUnfinished(entry)
    }

    // MARK: Installing

    /// Installs a package, or another version of it. Memory is bounded for any archive: about 350 bytes for each
    /// member, and some megabytes.
    ///
    /// In addition to the members of the earlier version, the store needs room for those that have changed. Installing
    /// an archive that is already installed changes nothing, unless ``InstallOptions/restoresMembers`` is set.
    ///
    /// - Parameters:
    ///   - archive: the path of a zip archive.
    ///   - options: how to install it.
    /// - Returns: the result, with counts.
    /// - Throws: ``PackageError``; `LarderError` of the store; `CancellationError` in a cancelled task, until the
    ///   members are visible. Nothing has changed then.
    @discardableResult
    public func install(_ archive: FilePath, _ options: InstallOptions = InstallOptions()) async throws -> InstallResult
    {
        if let name = options.name { try PackageName.validate(name) }
        return try await alone { [self] _ in
            let reader = try ZipReader(archive, password: options.password, limits: options.limits)
            let now = clock.now()
            let contents = try PackageContents(
                reader, options, rules: rules, now: Instant(milliseconds: now.microseconds / 1_000))
            let name = options.name ?? contents.header?.name ?? PackageName.from(archive.stem ?? "")
            do {
                try PackageName.validate(name)
            } catch let error as PackageError {
                throw PackageError(.badManifest, error.message, archive: archive, member: MemberList.fileName)
            }
            let previous = try PackageRecords(store).package(name)
            if let previous, previous.isTrusted, contents.signer?.description != previous.signer,
                !options.acceptsOtherSigner
            {
                throw PackageError(
                    .untrusted, "the installed package '\(name)' is signed with another key", archive: archive)
            }
            if var previous, previous.state == .installed, previous.archiveDigest == reader.digest.hexadecimal,
                previous.mode == options.mode ?? previous.mode, previous.baseURL == options.baseURL,
                !options.restoresMembers, try store.peek(PackageKeys.list(previous.id)) != nil
            {
                if !options.trustedKeys.isEmpty, !previous.isTrusted {
                    previous.isTrusted = true
                    try PackageRecords(store).write(previous)
                }
                return InstallResult(package: previous, wasInstalled: true)
            }
            let installer = Installer(
                store, contents, options, rules: rules, name: name, previous: previous, at: now, reach: reach)
            // The members are visible, or nothing has changed. What cannot be removed now, the next one removes.
            defer { Cancellation.masked { try? remains.remove() } }
            let result = try installer.run()
            logger.debug(
                "installed a package",
                metadata: [
                    "category": "packages", "package": "\(name)", "added": "\(result.added)",
                    "replaced": "\(result.replaced)", "removed": "\(result.removed)",
                ])
            return result
        }
    }

    /// Finishes or undoes the work of a killed process. Each installation and removal does this first; a program that
    /// calls it at its start frees the space earlier.
    ///
    /// - Throws: `LarderError` of the store, ``PackageError/Code/busy``.
    public func recover() async throws {
        let isWaiting = try await store.performLong { [remains] in try remains.isWaiting() }
        if isWaiting { try await alone { _ in } }
    }

    /// Runs `body` on a thread that may wait, while no one else changes packages of the store.
    func alone<R: Sendable>(_ body: @escaping @Sendable (Store) throws -> R) async throws -> R {
        try Task.checkCancellation()
        let path = store.path
        guard ActiveStores.enter(path) else { throw busy }
        defer { ActiveStores.leave(path) }
        guard let claim = try await store.claimForAllVersions(PackageKeys.claim) else { throw busy }
        do {
            let result = try await store.perform { [self] _ in
                try recoverWaiting()
                return try body(store)
            }
            await claim.release()
            return result
        } catch {
            await claim.release()
            throw error
        }
    }

    /// Runs `body` on a thread that may wait.
    func withStore<R: Sendable>(_ body: @escaping @Sendable (Store, Timestamp) throws -> R) async throws -> R {
        try await store.perform { [clock] in try body($0, clock.now()) }
    }

    private var busy: PackageError {
        PackageError(.busy, "a package is being installed or removed in this store: try again when that is done")
    }

    private func recoverWaiting() throws {
        // A store without room must not keep anyone from removing packages.
        do {
            try FormerPackages(store, reach: reach).takeOver()
            try remains.remove()
        } catch let error as LarderError where error.code == .noSpace {}
        for package in try PackageRecords(store).all() where package.state == .removing {
            try remove(package, keepsMembers: package.keepsMembers ?? false)
        }
    }

    private var remains: PackageRemains { PackageRemains(store: store, rules: rules) }

    // MARK: What is installed

    /// The installed packages, by name. Does not count as a use of them.
    ///
    /// - Throws: `LarderError` of the store.
    public func packages() async throws -> [InstalledPackage] {
        try await store.performLong { [store] in try PackageRecords(store).all() }
    }

    /// The package with a name; nil if it is not installed.
    ///
    /// - Parameter name: as it was installed.
    /// - Throws: `LarderError` of the store.
    public func package(_ name: String) async throws -> InstalledPackage? {
        try await store.performLong { [store] in try PackageRecords(store).package(name) }
    }

    /// Calls `body` with each member in the list of a package: as it was installed, even if it has been removed since.
    ///
    /// - Parameters:
    ///   - name: of the package.
    ///   - body: runs on another thread. Throw from it to stop.
    /// - Throws: ``PackageError/Code/notInstalled``, `LarderError` of the store, and what `body` throws.
    public func forEachMember(
        of name: String, _ body: @escaping @Sendable (PackageMember) throws -> Void
    ) async throws {
        try await store.perform { store in
            let package = try require(name)
            let isThere = try InstalledList(store, package).forEach { line in
                guard let url = line.url, let digest = Digest(hexadecimal: line.sha256) else { return }
                try body(PackageMember(url: url, digest: digest, length: line.size, status: line.status ?? 200))
            }
            if !isThere { throw listIsGone(package) }
        }
    }

    /// The names of a package's user data, in their order.
    ///
    /// - Parameter name: of the package.
    /// - Throws: ``PackageError/Code/notInstalled``, `LarderError` of the store.
    public func dataNames(of name: String) async throws -> [String] {
        try await store.performLong { [store] in
            let prefix = PackageKeys.data(try require(name).id)
            return try store.keys(.prefix(prefix)).map {
                String(decoding: $0.bytes[prefix.bytes.count...], as: UTF8.self)
            }
        }
    }

    /// User data of a package.
    ///
    /// - Parameters:
    ///   - data: its name, such as `KEY/settings.json`.
    ///   - name: of the package.
    /// - Returns: nil if the package has no such data.
    /// - Throws: ``PackageError/Code/notInstalled``, `LarderError` of the store.
    public func data(_ data: String, of name: String) async throws -> Body? {
        try await store.performLong { [store] in
            try store.peek(PackageKeys.data(try require(name).id, data))?.body
        }
    }

    private func require(_ name: String) throws -> InstalledPackage {
        if let package = try PackageRecords(store).package(name) { return package }
        throw PackageError(.notInstalled, "there is no installed package '\(Key(name))'")
    }

    private func listIsGone(_ package: InstalledPackage) -> PackageError {
        PackageError(
            .missingMember, "the list of the members of '\(package.name)' is gone or damaged: install it again")
    }

    /// Checks every member of a package.
    ///
    /// - Parameters:
    ///   - name: of the package.
    ///   - isDeep: reads each body and compares it with its digest. Default: false, only the index is read.
    /// - Returns: the state of the members.
    /// - Throws: ``PackageError/Code/notInstalled``; `LarderError` of the store; `CancellationError`.
    public func verify(_ name: String, isDeep: Bool = false) async throws -> PackageReport {
        try await store.perform { [rules] store in
            try PackageVerification(store, require(name), rules: rules, isDeep: isDeep).run()
        }
    }

    // MARK: Removing

    /// Removes a package.
    ///
    /// - Parameters:
    ///   - name: of the package.
    ///   - keepsMembers: leaves the responses in the store, as if they had come over the network. Default: false.
    ///     Otherwise one commit makes all of them invisible. Other responses for their URLs stay.
    /// - Returns: the package that was removed.
    /// - Throws: ``PackageError/Code/notInstalled``, ``PackageError/Code/busy``, `LarderError` of the store.
    @discardableResult
    public func remove(_ name: String, keepsMembers: Bool = false) async throws -> InstalledPackage {
        try await alone { [self] _ in
            let package = try require(name)
            try remove(package, keepsMembers: keepsMembers)
            logger.debug("removed a package", metadata: ["category": "packages", "package": "\(name)"])
            return package
        }
    }

    private func remove(_ package: InstalledPackage, keepsMembers: Bool) throws {
        let records = PackageRecords(store)
        if keepsMembers {
            var removing = package
            (removing.state, removing.keepsMembers) = (.removing, true)
            try records.write(removing)
            reach("remove.begun")
            // What was displaced as a whole does not come back.
            if package.state != .displaced { try release(package) }
        }
        do {
            try forget(package)
        } catch let error as LarderError where error.code == .noSpace {
            // A full store: members first.
            try store.remove(.prefix(PackageKeys.member(package.id)))
            try forget(package)
        }
        reach("remove.committed")
        try remains.remove(package.id)
        try store.flush()
    }

    /// From here on no reader finds a member.
    private func forget(_ package: InstalledPackage) throws {
        let records = PackageRecords(store)
        var batch = WriteBatch()
        try records.put(records.all().filter { $0.name != package.name }, &batch)
        batch.remove(PackageKeys.owner(package.id))
        try store.write(batch).throwIfFailed()
        try store.flush()
    }

    /// Makes the members of a package responses like any other.
    private func release(_ package: InstalledPackage) throws {
        let stored = StoredURLs(store, rules)
        let now = Instant(milliseconds: clock.now().microseconds / 1_000)
        var batch = WriteBatch()
        try store.forEach(.prefix(PackageKeys.member(package.id))) { member in
            guard let url = PackageKeys.url(ofMember: member.key) else { return }
            try stored.put(member, for: Key(url), at: now, &batch)
            batch.remove(member.key)
            if batch.count < 256 { return }
            try store.write(batch).throwIfFailed()
            batch = WriteBatch()
        }
        if !batch.isEmpty { try store.write(batch).throwIfFailed() }
    }
}
