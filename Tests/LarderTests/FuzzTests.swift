import LMDB
import SystemPackage
import TestSupport
import Testing

@testable import Larder

/// Decoders of bytes from outside, fed with mutations of good inputs; `tools/fuzz` does it guided by coverage.
@Suite struct FuzzTests {
    /// One decoder and inputs that it takes.
    struct Target: CustomTestStringConvertible, Sendable {
        let name: String
        let seeds: [[UInt8]]
        let decode: @Sendable ([UInt8]) throws -> Void

        var testDescription: String { name }
    }

    static let targets: [Target] = [
        Target(name: "entry record", seeds: [sealed.bytes, EntryRecord().bytes, long.bytes]) { bytes in
            try bytes.withUnsafeBytes { raw in
                _ = EntryView(raw)?.hasLongKey(Key(bytes: bytes.suffix(600)))
                _ = EntryView(raw)?.fits(raw)
                guard let record = EntryRecord(raw) else { return }
                _ = EntryView(raw)?.isIntact(under: [1])
                try #require(record.bytes.withUnsafeBytes { EntryRecord($0) } == record)
            }
        },
        Target(name: "blob record", seeds: [blob(.inline), blob(.file)]) { bytes in
            bytes.withUnsafeBytes { raw in
                guard let head = BlobRecord(raw) else { return }
                if head.location == .inline { _ = BlobRecord.inlineBytes(raw).count }
                _ = (head.allocated.asBytes, head.storedLength.asBytes, Layout.blob(head.digest), head.token.name)
            }
        },
        Target(name: "state row", seeds: [StoreState().bytes]) { bytes in
            bytes.withUnsafeBytes { raw in
                guard var state = StoreState(raw) else { return }
                state.note(boot: 99, isShared: false, wasClosed: false)
                _ = (state.isSuspect(epoch: 1), state.budget.usableBytes, state.budget.headroom, state.bytes)
                _ = state.budget.batchLimits(.mebibytes(16))
            }
        },
        Target(name: "FORMAT", seeds: [Array(FormatFile.fresh().contents.utf8)]) { bytes in
            let text = String(decoding: bytes, as: UTF8.self)
            _ = FormatFile.isNewer(text)
            guard let file = try? FormatFile(contents: text, path: "FORMAT") else { return }
            try #require(try FormatFile(contents: file.contents, path: "FORMAT").version == file.version)
        },
        Target(
            name: "names", seeds: ["000000000000001f-0000000000000002", "0123456789abcdef.lock"].map { Array($0.utf8) }
        ) { bytes in
            let text = String(decoding: bytes, as: UTF8.self)
            _ = (Layout.instance(ofStaged: text), Layout.parseTrash(text), Digest(hexadecimal: text))
            _ = bytes.withUnsafeBytes { StagingToken(indexKey: $0) }
        },
        Target(name: "sizes", seeds: ["1.5GiB", "4096", "10 MB"].map { Array($0.utf8) }) { bytes in
            if let size = ByteCount(parsing: String(decoding: bytes, as: UTF8.self)) { try #require(size >= .zero) }
        },
        Target(name: "keys", seeds: [Array("https://example.com/".utf8), body(600)]) { bytes in
            let key = Key(bytes: bytes)
            _ = (key.description, key.text)
            try #require(IndexKey.bytes(for: key).count <= 511)
        },
    ]

    private static var sealed: EntryRecord {
        var record = FormatTests.entry
        record.id = 5
        record.seal(for: [1], Digest.of([]))
        return record
    }

    private static var long: EntryRecord {
        var record = sealed
        record.longKey = body(600)
        return record
    }

    private static func blob(_ location: BlobRecord.Location) -> [UInt8] {
        var head = BlobRecord(digest: Digest.of([1]))
        head.location = location
        head.length = 20
        head.storedLength = 20
        var bytes = [UInt8](repeating: 0, count: head.headLength)
        bytes.withUnsafeMutableBytes { head.write(to: $0) }
        return bytes + (location == .inline ? body(20) : [])
    }

    @Test(arguments: targets) func noInputTraps(_ target: Target) throws {
        FuzzRuns.decode(mutationsOf: target.seeds, "noInputTraps \(target.name)", target.decode)
    }

    /// Seeds and findings of `tools/fuzz`.
    @Test func theCorpusIsTaken() throws {
        let corpus = FilePath(#filePath).removingLastComponent().removingLastComponent().removingLastComponent()
            .appending("Fuzz/corpus")
        var count = 0
        for name in TestFiles.tree(corpus) {
            let bytes = try TestFiles.read(corpus.appending(name))
            for target in Self.targets {
                try target.decode(bytes)
                try target.decode(Array(bytes.dropFirst()))
            }
            let pages = MemoryPages(bytes)
            for meta in try MetaPage.all(pages) {
                var walk = PageWalk(pages, meta, bigValues: .heads, isTolerant: true)
                try walk.run { _, _, _ in }
                // The seed is a whole file, with a tree of two levels, a big value and a free page.
                if name == "pages/small" { #expect(walk.damages == []) }
            }
            count += 1
        }
        #expect(count >= 14)
    }
}
