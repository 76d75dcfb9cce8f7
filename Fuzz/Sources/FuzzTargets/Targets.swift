import LMDB
import SystemPackage

@testable import CachectlCore
@testable import Larder

/// Rows of the index. The first byte says which.
@Sendable func fuzzRecords(_ input: [UInt8]) {
    guard let kind = input.first else { return }
    let bytes = Array(input.dropFirst())
    bytes.withUnsafeBytes { raw in
        switch kind % 5 {
        case 0:
            guard let record = EntryRecord(raw) else { return }
            _ = EntryView(raw)?.isIntact(under: [1, 2, 3])
            let again = record.bytes.withUnsafeBytes { EntryRecord($0) }
            require(again == record, "an entry record changes when it is written")
        case 1:
            guard let head = BlobRecord(raw) else { return }
            if head.location == .inline, !head.isDamaged {
                require(
                    UInt64(BlobRecord.inlineBytes(raw).count) == head.storedLength, "an inline body of another length")
            }
            _ = (head.allocated.asBytes, head.token.name, Layout.blob(BlobName(head.digest)))
        case 2:
            guard let record = DigestRecord(raw) else { return }
            var written = [UInt8](repeating: 0, count: DigestRecord.length)
            written.withUnsafeMutableBytes { record.write(to: $0) }
            require(written == bytes, "a digest record changes when it is written")
        case 3:
            guard var state = StoreState(raw) else { return }
            let again = state.bytes.withUnsafeBytes { StoreState($0) }
            require(again == state || state.budget.entries < 0, "the counters change when they are written")
            state.note(boot: 7, isShared: false, wasClosed: false)
            _ = state.isSuspect(epoch: 3)
            _ = (state.budget.usableBytes, state.budget.headroom)
        default:
            guard let view = EntryView(raw) else { return }
            _ = (view.blob, view.length, view.stamp, view.expires, view.version)
            _ = view.hasLongKey(Key(bytes: bytes.suffix(600)))
            _ = view.fits(UnsafeRawBufferPointer(rebasing: raw[min(raw.count, 40)...]))
        }
    }
}

/// The file FORMAT and names of files.
@Sendable func fuzzNames(_ input: [UInt8]) {
    let text = String(decoding: input, as: UTF8.self)
    if let format = try? FormatFile(contents: text, path: "FORMAT") {
        require(
            (try? FormatFile(contents: format.contents, path: "FORMAT")) == format, "FORMAT changes when it is written")
    }
    _ = FormatFile.isNewer(text)
    if let key = StoreKey(text) { require(StoreKey(key.contents)?.contents == key.contents, "a store key changes") }
    _ = Layout.instance(ofStaged: text)
    if let digest = Digest(hexadecimal: text) { require(Digest(hexadecimal: digest.hexadecimal) == digest, "digest") }
    if let token = StagingToken(name: text) { require(StagingToken(name: token.name) == token, "token") }
    if let parts = Layout.parseTrash(text) {
        let again = Layout.parseTrash(Layout.trash(parts.token, parts.name))
        require(again?.token == parts.token && again?.name == parts.name, "trash")
    }
    input.withUnsafeBytes { raw in _ = StagingToken(indexKey: raw) }
}

/// Keys: their text, their place in the index and their path in an exported tree.
@Sendable func fuzzKeys(_ input: [UInt8]) {
    let key = Key(bytes: input)
    _ = key.description
    require(IndexKey.bytes(for: key).count <= 511, "an index key of \(IndexKey.bytes(for: key).count) bytes")
    guard !input.isEmpty else { return }
    for component in KeyPath.components(of: key) {
        require(
            (1...255).contains(component.count) && component != Array(".".utf8) && component != Array("..".utf8)
                && !component.contains(0) && !component.contains(UInt8(ascii: "/")),
            "the path of \(key) leaves the tree")
    }
    _ = KeyPath.components(of: key, after: Key(bytes: input.prefix(3)))
    _ = KeyPath.key(base: Array("http://h/".utf8), path: input)
    let encoded = PercentCoding.encode(input)
    require(PercentCoding.decode(encoded) == input, "percent-encoding loses bytes")
    _ = PercentCoding.decode(input)
}

/// A data file of LMDB.
@Sendable func fuzzPages(_ input: [UInt8]) {
    let pages = MemoryPages(input)
    guard let metas = try? MetaPage.all(pages) else { return }
    for meta in metas {
        var walk = PageWalk(pages, meta, bigValues: .heads, isTolerant: true)
        do {
            try walk.run { tree, key, value in
                if tree == "entries" { _ = EntryView(value)?.isIntact(under: Array(key)) }
                if tree == "blobs" { _ = BlobRecord(value) }
            }
        } catch {
            fatalError("a tolerant walk of memory throws \(error)")
        }
        var strict = PageWalk(pages, meta, bigValues: .heads)
        let isSound = (try? strict.run()) != nil
        require(isSound == walk.damages.isEmpty, "the strict walk and the tolerant one disagree")
    }
}

/// Sizes, limits and durations of the command line.
@Sendable func fuzzArguments(_ input: [UInt8]) {
    let text = String(decoding: input, as: UTF8.self)
    if let size = ByteCount(parsing: text) { require(size >= .zero, "the size \(size) is negative") }
    if let duration = DurationArgument.duration(text) {
        require(duration >= .zero, "the duration \(duration) is negative")
        _ = Timestamp(seconds: 1_800_000_000) + duration
    }
    _ = try? SizeArgument.parseBudget(text)
    _ = try? SizeArgument.parseFloor(text)
    _ = try? SizeArgument.parseCount(text)
    _ = try? DurationArgument.parseLifetime(text)
}
