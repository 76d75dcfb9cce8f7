import LMDB
import SystemPackage

/// Takes out of a damaged index what can be read, without LMDB: rows of entries and blobs, and what does not follow
/// from them. A repair of the new index makes the rest, before the new index takes the old one's place: an open after a
/// crash finds the store whole.
struct Salvage {
    let files: StoreFiles
    private(set) var damages: [String] = []
    /// True if there is nothing to repair: every page, and the row of counters, can be read.
    private(set) var isSound = false
    /// The counters, if they can be read.
    private(set) var state: StoreState?
    private var found = 0
    /// The state whose rows are kept.
    private var chosen: MetaPage?
    /// The one whose counters and versions are.
    private var counted: MetaPage?
    private var file: OwnedDescriptor?

    /// True if entries or bodies of the last commit cannot be read.
    private var hasLostRows = false

    /// Trees without which every entry can be kept as the last commit left it.
    private static let derived: Set = [
        "meta", "recency", "pinned", "expiry", "tags", "sessions", "digests", "unpublished", "pinnedTags", "leases",
        "free pages",
    ]
    /// Trees whose rows do not follow from those of others.
    private static let kept = ["meta", "entries", "blobs", "unpublished", "pinnedTags", "leases"]

    /// Nil in a store that is not encrypted.
    private let opener: RowOpener?

    init(files: StoreFiles) {
        self.files = files
        opener = files.cipher.map { RowOpener($0.rows) }
    }

    /// A row as it was before it was sealed; nil if it cannot be opened.
    private func opened(
        _ tree: String, _ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer
    ) -> Cursor.Pair? {
        guard let opener, let place = Index.names.firstIndex(where: { $0.0 == tree }) else { return (key, value) }
        return opener.open(Index.number(of: place), key, value)
    }

    /// Says whether the index is that of an encrypted store, and of which: see `IndexProof`.
    private var proof: [UInt8]?

    /// Throws unless the key is that of the index, as far as that can be read.
    func requireKey() throws {
        // Where the row cannot be read, rows that no key opens are not kept.
        if proof != nil || files.cipher == nil {
            try IndexProof.require(proof, rows: 1, opens: { isReadable }, files)
        }
    }

    /// True if there is anything to keep.
    var isReadable: Bool { found > 0 || state != nil }

    // MARK: Looking

    /// Walks over the state of each meta page, and keeps the one of which more can be read. The older state is whole
    /// until the next commit but one: LMDB does not reuse its pages before.
    mutating func examine() throws {
        let path = files.index.path(of: Layout.data)
        guard let file = try FileSystem.openIfPresent(Layout.data, in: files.index, flags: O_RDONLY) else {
            // The next open makes an index; the check removes body files that it does not name.
            isSound = true
            return
        }
        self.file = file
        let pages = try FilePages(descriptor: file.raw)
        if pages.length == 0 {
            isSound = true
            return
        }
        let metas = try MetaPage.all(pages)
        if let current = PageFormat.current, let other = metas.first?.format, other != current {
            damages.append("\(path): written with \(other), and this program runs with \(current)")
        }
        if metas.count < 2 { damages.append("\(path): \(2 - metas.count) of its 2 head pages cannot be read") }
        for meta in metas {
            let look = try look(pages, meta)
            proof = proof ?? look.proof
            if meta == metas.first {
                (chosen, found) = (meta, look.rows)
                damages += look.damages.map(\.description)
                if look.state == nil, look.damages.isEmpty { damages.append("the row of counters cannot be read") }
                isSound = damages.isEmpty
                if isSound { return }
            }
            if state == nil, look.state != nil { (state, counted) = (look.state, meta) }
            // The older one would undo the last commit: only where that has lost entries or bodies.
            if meta != metas.first, hasLostRows, look.rows > found { (chosen, found) = (meta, look.rows) }
            if meta == metas.first { hasLostRows = !look.damages.allSatisfy { Self.derived.contains($0.tree) } }
        }
    }

    private func look(_ pages: FilePages, _ meta: MetaPage) throws -> (
        damages: [PageDamage], state: StoreState?, rows: Int, proof: [UInt8]?
    ) {
        var walk = PageWalk(pages, meta, bigValues: .heads, isTolerant: true)
        var state: StoreState?
        var rows = 0
        var proof: [UInt8]?
        try walk.run { tree, key, value in
            if tree == "meta", key.elementsEqual(IndexProof.key) { proof = Array(value) }
            guard tree == "meta" || tree == "entries", let row = opened(tree, key, value) else { return }
            // What no key opens, or is not a record, is nothing to keep.
            if tree == "entries", EntryView(row.value) != nil { rows += 1 }
            if tree == "meta", row.key.elementsEqual(Index.stateKey) { state = StoreState(row.value) }
        }
        var damages = walk.damages
        for (name, order, _) in Index.names {
            if let found = walk.trees[name], found != order {
                damages.append(PageDamage(page: meta.page, tree: name, what: "it has keys of another kind"))
            }
        }
        return (damages, state, rows, proof)
    }

    // MARK: Writing

    /// Writes what can be read to a new index next to the old one.
    /// - Parameter now: store time, for the rows that are made.
    func write(now: Timestamp) throws {
        guard let chosen, let file else { return }
        try Salvage.discard(files)
        try FileSystem.makeDirectory(Layout.rebuilt, in: files.index)
        let path = files.index.path(of: Layout.rebuilt)
        var isWritten = false
        // What a full disk stopped must not keep it full.
        defer { if !isWritten { try? Salvage.discard(files) } }
        do {
            try IndexLockFile.allocate(files.index.directory(Layout.rebuilt))
            let environment = try Environment(path: path.string)
            defer { environment.close() }
            if let cipher = files.cipher { environment.sealRows(with: cipher.rows) }
            guard let index = try Index(environment: environment, create: true) else { return }
            try environment.write { try IndexProof.write($0, environment, files) }
            try copy(FilePages(descriptor: file.raw), chosen, to: index, now)
            try environment.sync()
            isWritten = true
        } catch let error as LMDBError {
            let data = path.appending(Layout.data)
            if error.isNoSpace || error.isShortWrite {
                throw LarderError(
                    .noSpace,
                    "no space left to write \(data), a new index with what can be read of the old one: free some disk "
                        + "space, or remove the whole store",
                    path: data, cause: error)
            }
            throw LarderError(.io, "cannot write the new index \(data)", path: data, cause: error)
        }
    }

    private func copy(_ pages: FilePages, _ meta: MetaPage, to index: Index, _ now: Timestamp) throws {
        let databases = Dictionary(
            uniqueKeysWithValues: Self.kept.compactMap { name in index.database(name).map { (name, $0) } })
        var batch: [(Database, [UInt8], [UInt8])] = []
        var bytes = 0
        var fallback = StoreState()
        fallback.boot = 0
        func commit() throws {
            let rows = batch
            (batch, bytes) = ([], 0)
            try index.environment.write { transaction in
                for (database, key, value) in rows { try transaction.put(database, key, value) }
            }
        }
        let counted = counted ?? meta
        for source in counted == meta ? [meta] : [counted, meta] {
            var walk = PageWalk(pages, source, bigValues: .heads, isTolerant: true)
            try walk.run { tree, storedKey, storedValue in
                guard let (key, value) = opened(tree, storedKey, storedValue) else { return }
                guard source == (tree == "meta" ? counted : meta), let database = databases[tree],
                    try Self.isSound(tree, key, value, &fallback)
                else { return }
                batch.append((database, Array(key), Array(value)))
                bytes += value.count
                if bytes > 8 << 20 || batch.count >= 10_000 { try commit() }
            }
        }
        try commit()
        // Without counters nothing is known of syncs: every body file is suspect until the check has read it.
        fallback.epoch &+= 1
        (fallback.suspectFrom, fallback.suspectTo) = (1, fallback.epoch)
        let state = state ?? fallback
        try index.environment.write { try $0.put(index.meta, Index.stateKey, state.bytes) }
        try index.environment.write { transaction in
            let mutation = try Mutation(index: index, files: files, transaction: transaction, now: now)
            try Repair(index: index, files: files).run(mutation)
            try mutation.finish()
        }
    }

    /// True if a row can be a row of that tree; learns from it what the counters have to be ahead of.
    private static func isSound(
        _ tree: String, _ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, _ fallback: inout StoreState
    ) throws -> Bool {
        switch tree {
        case "entries":
            guard let record = EntryRecord(value), EntryView(value)?.isIntact(under: Array(key)) == true,
                record.embedded?.isSound ?? true
            else { return false }
            if record.stored < 1 << 53 { fallback.clock = max(fallback.clock, record.stored) }
            return true
        case "blobs":
            guard key.count == 8, key.field(0, as: UInt64.self) < Repair.numberLimit, let head = BlobRecord(value),
                !head.isDamaged
            else { return false }
            if head.location == .inline { return try head.matches(inline: BlobRecord.inlineBytes(value)) }
            if head.epoch < 1 << 53 { fallback.epoch = max(fallback.epoch, head.epoch) }
            return true
        case "meta": return !key.elementsEqual(Index.stateKey) && value.count == 2
        case "unpublished": return key.count == 16 && value.count == 8
        case "pinnedTags": return value.isEmpty || key.first == 0
        default: return value.count == 16
        }
    }

    /// Removes a new index that was not finished, or is in its place.
    static func discard(_ files: StoreFiles) throws {
        guard let status = try FileSystem.status(Layout.rebuilt, in: files.index) else { return }
        guard status.isDirectory else {
            try FileSystem.unlink(Layout.rebuilt, in: files.index)
            return
        }
        let directory = try files.index.directory(Layout.rebuilt)
        for name in try directory.allNames() { try FileSystem.unlink(name, in: directory) }
        try FileSystem.removeDirectory(Layout.rebuilt, in: files.index)
    }
}
