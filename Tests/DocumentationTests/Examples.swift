import Larder

// Every Swift block of README.md and docs/*.md, verbatim but for its indentation and its imports: that this file
// compiles is the test that they do. `DocumentationTests` compares the two.

enum Examples {
    static func readmeEmbed() throws {
        let store = try Store(at: "/var/cache/app", Configuration(budget: Budget(bytes: .gigabytes(10))))

        try store.put(Array("hello".utf8), for: "https://example.com/hello", PutOptions(tags: ["greetings"]))
        if let entry = try store.get("https://example.com/hello") {
            print(try entry.body.bytes().count, "bytes,", entry.digest)
        }
        try store.remove(.tag("greetings"))

        print(try store.statistics().allocatedBytes)
        try store.close()
    }

    static func readmeStream(store: Store, pieces: AsyncStream<[UInt8]>) async throws {
        let writer = try store.writer(for: "backup.tar", PutOptions(lifetime: .duration(.seconds(86_400))))
        try await writer.write(contentsOf: pieces)
        let digest = try await writer.commit()

        if let entry = try await store.get("backup.tar") {
            for try await piece in entry.body.chunks() { print(piece.count, "of", entry.body.length, digest) }
        }
    }

    static func concurrencyWithBody(store: Store) throws {
        let sum = try store.withBody(of: "https://example.com/hello") { span in
            (0..<span.byteCount).reduce(0) { $0 + Int(span.unsafeLoad(fromByteOffset: $1, as: UInt8.self)) }
        }
        print(sum ?? 0)
    }

    static func recoveryRebuild() throws {
        do {
            try Store(at: "/var/cache/app").close()
        } catch let error as LarderError where error.code == .corruption {
            let report = try Store.rebuildIndex(at: "/var/cache/app")
            print("\(report.keptEntries) entries kept; damaged: \(report.damages)")
        }
    }

    static func recoveryCheck(store: Store) throws {
        let report = try store.check(repair: true)
        for violation in report.violations { print(violation) }
    }
}
