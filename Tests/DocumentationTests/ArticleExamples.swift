import Larder

// The Swift blocks of the articles in Sources/*/*.docc that no document in docs/ has, verbatim but for their
// indentation and their imports. `DocumentationTests` compares the two.

enum ArticleExamples {
    static func gettingStarted() throws {
        let store = try Store(at: "/var/cache/app", Configuration(budget: Budget(bytes: .gigabytes(10))))

        let hello = try store.put(
            Array("hello".utf8), for: "https://example.com/hello", PutOptions(tags: ["greetings"]))
        if let entry = try store.get("https://example.com/hello") {
            print(try entry.body.bytes().count, "bytes,", entry.digest)
        }
        print(try store.missing(of: [hello]).count, "bodies are missing")
        try store.remove(.tag("greetings"))

        print(try store.statistics().allocatedBytes)
        try store.close()
    }

    static func openingAStore() throws {
        do {
            let configuration = Configuration(budget: Budget(bytes: .gigabytes(1)))
            Store.shared = try Store(at: Store.defaultPath, configuration)
        } catch {
            print("working without a cache:", error)
        }

        if let store = Store.shared { print(store.path, try store.statistics().entryCount) }
    }

    static func ephemeralStore() async throws {
        let scratch = try await Store.ephemeral(Configuration(budget: Budget(bytes: .megabytes(64))))
        try await scratch.put("draft".utf8, for: "draft")
        try await scratch.close()  // nothing is left on the disk
    }

    static func openEncrypted(at directory: String, keyFile: String) throws -> Store {
        var configuration = Configuration(budget: Budget(bytes: .gigabytes(1)))
        configuration.encryption = try EncryptionKey(contentsOf: keyFile)
        return try Store(at: directory, configuration)
    }

    static func renewKey(of directory: String, from old: EncryptionKey) throws -> EncryptionKey {
        let new = EncryptionKey.random()
        try new.save(to: directory + ".key.new")
        try Store.changeKey(at: directory, from: old, to: new)
        return new
    }

    static func lifetimes(page: [UInt8]) throws {
        var configuration = Configuration()
        configuration.defaultLifetime = .duration(.seconds(86_400))  // for puts that give no lifetime
        configuration.maximumLifetime = .seconds(30 * 86_400)  // for all, `never` included
        let store = try Store(at: "/var/cache/app", configuration)

        try store.put(page, for: "a")  // one day
        try store.put(page, for: "b", PutOptions(lifetime: .duration(.seconds(60))))
        try store.put(page, for: "c", PutOptions(lifetime: .until(Timestamp(seconds: 1_800_000_000))))
        try store.touch("b", lifetime: .never)  // 30 days from now, as the ceiling says

        if let entry = try store.get("c", includingExpired: true) {
            print(store.isFresh(entry) ? "fresh" : "stale", entry.attributes.expires?.description ?? "never expires")
        }
    }

    static func withoutTheBytes(store: Store) throws {
        store["greeting"] = Array("hello".utf8)  // default options; nil removes the entry
        print(store["greeting"]?.count ?? 0, try store.contains("greeting"))
        if let attributes = try store.attributes(of: "greeting") {
            print(attributes.created, attributes.hitCount, attributes.leasedUntil?.description ?? "not leased")
        }
    }

    static func withoutAKey(store: Store) throws {
        let unique = try store.put("draft".utf8)
        let named = try store.putByContent("hello".utf8)
        print(unique, named, named == Key(Digest.of("hello".utf8)))
    }

    static func writingLargeBodies(store: Store) async throws {
        let pieces = AsyncStream<[UInt8]> { stream in  // or what a socket or a file gives
            stream.yield(Array("hello".utf8))
            stream.finish()
        }
        let writer = try store.writer(for: "backup.tar", PutOptions(lifetime: .duration(.seconds(86_400))))
        try await writer.write(contentsOf: pieces)
        let digest = try await writer.commit()

        if let entry = try await store.get("backup.tar") {
            for try await piece in entry.body.chunks() { print(piece.count, "of", entry.body.length, digest) }
        }
    }

    static func batches(store: Store, pages: [(Key, [UInt8])]) async throws {
        var batch = WriteBatch()
        for (key, bytes) in pages { batch.put(bytes, for: key, unlessPresent: true) }
        batch.change("https://example.com/old", EntryChange(lifetime: .duration(.seconds(60))))
        batch.lease(tag: "page", for: .seconds(600))
        batch.remove("https://example.com/gone")
        try await store.write(batch, durability: .durable).throwIfFailed()
    }

    struct Report: Sendable {
        func rendered() async throws -> [UInt8] { [] }
    }

    static func readThrough(store: Store, report: Report) async throws {
        let entry = try await store.value(for: "report:2026-11") { _ in
            Computed(try await report.rendered(), PutOptions(lifetime: .duration(.seconds(3_600)), tags: ["report"]))
        }
        print(try await entry?.body.bytes().count ?? 0)
    }

    enum Download: Error { case changed }

    protocol Downloading: Sendable {
        func missing(from ranges: [Range<Int64>]) -> [Range<Int64>]
        func bytes(of range: Range<Int64>) async throws -> [UInt8]
    }

    protocol Client: Sendable { func send(_ bytes: [UInt8]) async throws }

    static func bodiesInProgress(
        store: Store, validator: [UInt8], length: Int, download: some Downloading, client: some Client
    ) async throws {
        let writer = try await store.perform {
            try $0.partialWriter(
                for: "https://example.com/film", PutOptions(metadata: validator), total: ByteCount(length))
        }
        if writer.metadata != validator { throw Download.changed }
        for range in download.missing(from: writer.ranges) {
            try await writer.write(download.bytes(of: range), at: range.lowerBound)
        }
        try await writer.commit()
        if let body = try await store.perform({ try $0.partialBody(of: "https://example.com/film") }) {
            for try await piece in body.follow(from: 0) { try await client.send(piece) }
        }
    }

    static func asynchronousForms(store: Store) async throws {
        print(try await store.perform { try $0.statistics().entryCount }, "entries")
    }

    static func selections(store: Store, yesterday: Timestamp) async throws {
        let old: Selection = .tag("news") && .unusedSince(yesterday) && !.pinned
        print(try await store.perform { try $0.keys(old).count }, "old entries")
        try await store.remove(old) { print($0.removed, "of", $0.examined) }

        for try await entry in try store.entries(.host("example.com") || .prefix("ftp://example.com/")) {
            print(entry.key, entry.length, entry.hitCount)
        }
    }

    static func keys(store: Store) async throws {
        for key in try await store.perform({ try $0.keys(.prefix("https://example.com/")) }) { print(key) }
        try await store.perform { try $0.clear() }
    }
}
