import Foundation
import SystemPackage
import TestSupport
import Testing

@testable import Larder

/// Bytes go in and out in whatever form the caller has them.
@Suite struct BytesTests {
    /// Inline, and in a file.
    static let lengths = [0, 1, 4000, 100_000]

    @Test(arguments: lengths)
    func everyFormStoresTheSameBody(length: Int) throws {
        try withStore { store in
            let bytes = body(length, 1)
            let digest = Digest.of(bytes)
            try #expect(store.put(Data(bytes), for: "data") == digest)
            try #expect(store.put(([9] + bytes + [9])[1..<(length + 1)], for: "slice") == digest)
            try #expect(store.put(ContiguousArray(bytes), for: "contiguous") == digest)
            try #expect(store.put(bytes.lazy.map { $0 }, for: "lazy") == digest)
            try bytes.withUnsafeBytes { raw in try #expect(store.put(raw.bytes, for: "span") == digest) }
            try #expect(store.put(bytes, for: "array") == digest)
            for key in ["data", "slice", "contiguous", "lazy", "span", "array"] {
                try #expect(store.bytes(Key(key)) == bytes, "\(key)")
            }
            try #expect(store.attributes(of: "data")?.references == 6)
        }
    }

    @Test(arguments: lengths)
    func asynchronousFormsStoreTheSameBody(length: Int) async throws {
        try await withStore { store in
            let bytes = body(length, 1)
            let digest = Digest.of(bytes)
            try await #expect(store.put(Data(bytes), for: "data") == digest)
            let key = try await store.put(Data(bytes))
            try #expect(store.bytes(key) == bytes)
            let named = try await store.putByContent(Data(bytes))
            #expect(named == Key(digest))
            try #expect(store.bytes(named) == bytes)
        }
    }

    @Test func textIsACollectionOfBytes() throws {
        try withStore { store in
            try store.put("grüß dich".utf8, for: "k")
            try #expect(store.bytes("k") == Array("grüß dich".utf8))
        }
    }

    @Test(arguments: [10, 100_000])
    func aDeclaredDigestIsCheckedForEveryForm(length: Int) throws {
        try withStore { store in
            let other = Digest.of(body(length, 2))
            let bytes = body(length, 1)
            try #expect(code { try store.put(Data(bytes), for: "k", digest: other) } == .digestMismatch)
            try #expect(
                code { try bytes.withUnsafeBytes { _ = try store.put($0.bytes, for: "k", digest: other) } }
                    == .digestMismatch)
            try #expect(store.get("k") == nil)
            #expect(store.stagedFiles == [])
        }
    }

    @Test(arguments: [10, 100_000])
    func aWriterTakesEveryForm(length: Int) async throws {
        try await withStore { store in
            let bytes = body(length, 1)
            let writer = try store.writer(for: "k")
            func writeNow() throws {
                try writer.write(Data(bytes[..<3]))
                try bytes[3..<5].withUnsafeBytes { try writer.write($0.bytes) }
                try writer.write(bytes[5..<7].lazy.map { $0 })
            }
            try writeNow()
            try await writer.write(bytes[7...])
            try await #expect(writer.commit() == Digest.of(bytes))
            try #expect(store.bytes("k") == bytes)
        }
    }

    // MARK: Out

    @Test(arguments: lengths)
    func everyBodyIsARangeOfAFile(length: Int) throws {
        try withStore { store in
            try store.put(body(length, 1), for: "k")
            let entry = try #require(try store.get("k"))
            let found = try entry.body.withFileRange { file, range in
                var found = [UInt8](repeating: 0, count: range.count)
                let count = try found.withUnsafeMutableBytes {
                    try file.read(fromAbsoluteOffset: range.lowerBound, into: $0)
                }
                #expect(count == range.count)
                return found
            }
            #expect(found == body(length, 1))
        }
    }

    #if os(Linux)
        @Test func theMemoryFileOfASmallBodyCannotBeChanged() throws {
            try withStore { store in
                try store.put(body(100, 1), for: "k")
                let entry = try #require(try store.get("k"))
                try entry.body.withFileRange { file, _ in
                    #expect(throws: Errno.notPermitted) { try file.writeAll(toAbsoluteOffset: 0, [1]) }
                    #expect(throws: Errno.notPermitted) { try file.resize(to: 0) }
                    #expect(throws: Errno.notPermitted) { try file.resize(to: 1000) }
                }
            }
        }
    #endif

    @Test(arguments: lengths)
    func bodiesAreMapped(length: Int) throws {
        try withStore { store in
            try store.put(body(length, 1), for: "k")
            let entry = try #require(try store.get("k"))
            let found = try entry.body.withMappedBytes { span in span.withUnsafeBytes { Array($0) } }
            #expect(found == body(length, 1))
        }
    }

    @Test func aFileThatWasCutIsNotMapped() throws {
        try withDirectory { path in
            let store = try Store(at: path, .testing())
            try store.put(body(100_000, 1), for: "k")
            try store.flush()
            let entry = try #require(try store.get("k"))
            guard case .file(_, let place) = entry.body.storage else { return #expect(Bool(false), "not a file") }
            try TestFiles.truncate(place.path, to: 5000)
            try #expect(code { try entry.body.withMappedBytes { _ in } } == .corruption)
            // The damage stays, so the invariants do not hold.
            try store.close()
        }
    }

    // MARK: Paths

    @Test func aStoreIsOpenedByStringAndURL() throws {
        try withDirectory { path in
            let first = try Store(at: path.string, .testing())
            try first.put([1], for: "k")
            try first.close()
            let second = try Store(at: URL(fileURLWithPath: path.string), .testing())
            try #expect(second.bytes("k") == [1])
            #expect(second.path == path)
            try finish(second)
            for text in ["https://example.com/x", "file://other.test/tmp/x"] {
                try #expect(code { _ = try Store(at: URL(string: text)!) } == .invalidArgument, "\(text)")
            }
            try #expect(code { _ = try Store(at: path.string + "\0x", .testing()) } == .invalidArgument)
        }
    }

    @Test func filesGoInAndOutByStringAndURL() async throws {
        try await withStore { store in
            let folder = store.path.string + ".files"
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
            defer { try? FileManager.default.removeItem(atPath: folder) }
            let name = folder + "/a b.bin"
            let file = URL(fileURLWithPath: name)
            try Data(body(5000, 1)).write(to: file)
            func callNow() throws {
                try store.adopt(file, for: "url")
                try store.adopt(name, for: "string")
                try #expect(store.export("url", to: folder + "/out1"))
                try #expect(store.export("url", to: URL(fileURLWithPath: folder + "/out 3")))
                let remote = URL(string: "https://example.com/")!
                try #expect(code { try store.adopt(remote, for: "k") } == .invalidArgument)
            }
            try callNow()
            try await store.perform { try $0.adopt(file, for: "url2") }
            try await store.perform { try $0.adopt(name, for: "string2") }
            for key in ["url", "url2", "string", "string2"] { try #expect(store.bytes(Key(key)) == body(5000, 1)) }
            let isExported = try await store.perform { try $0.export("url", to: folder + "/out2") }
            #expect(isExported)
            let isExportedToURL = try await store.perform {
                try $0.export("url", to: URL(fileURLWithPath: folder + "/out 4"))
            }
            #expect(isExportedToURL)
            for name in ["out1", "out2", "out 3", "out 4"] {
                try #expect(Data(contentsOf: URL(fileURLWithPath: folder + "/" + name)) == Data(body(5000, 1)))
            }
        }
    }
}
