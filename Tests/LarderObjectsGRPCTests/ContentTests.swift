import BuildMessages
import GRPCCore
import Larder
import LarderObjectsGRPC
import SeededData
import SwiftProtobuf
import TestSupport
import Testing

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Blobs: many in one call, and as streams.
struct ContentTests {
    @Test func manyInOneCall() async throws {
        try await Setting.run { setting in
            let blobs = (0..<50).map { body(1_000 * $0, $0) }
            let digests = blobs.map(named)
            try await #expect(setting.missing(of: digests).count == 49, "the empty blob is always there")
            try await setting.update(blobs)
            try await #expect(setting.missing(of: digests + [named(body(7, 99))]) == [named(body(7, 99)).hash])
            // The size in a name counts: a blob of another size is another blob.
            var other = digests[1]
            other.sizeBytes += 1
            try await #expect(setting.missing(of: [other]) == [other.hash])
            let response = try await setting.read(.with { $0.digests = digests + [named(body(7, 99))] })
            let isSame = response.responses.dropLast().map { Array($0.data) } == blobs
            #expect(isSame)
            #expect(response.responses.last?.status.code == 5)
            #expect(setting.objects.figures.uploads == 49 && setting.objects.figures.hits == 50)
        }
    }

    @Test func aBlobOfABatchThatIsNotValid() async throws {
        try await Setting.run { setting in
            let good = body(100, 1)
            let response = try await setting.update(
                .with {
                    $0.requests = [
                        .with {
                            $0.digest = named(body(100, 2))
                            $0.data = Data(body(100, 3))
                        },
                        .with {
                            $0.digest = named(good)
                            $0.data = Data(good)
                        },
                        .with {
                            $0.digest = named(body(100, 4))
                            $0.data = Data(body(99, 4))
                        },
                        .with {
                            $0.digest = named(good)
                            $0.compressor = .zstd
                        },
                        .with { $0.digest.hash = "../../etc/passwd" },
                    ]
                })
            #expect(response.responses.map(\.status.code) == [3, 0, 3, 3, 3])
            try await #expect(setting.store.figures().entryCount == 1)
        }
    }

    @Test func moreThanOneMessageMayHave() async throws {
        try await Setting.run { setting in
            let blobs = (0..<3).map { body(2 << 20, $0) }
            for blob in blobs {
                _ = try await setting.write(upload(blob), [blob[..<1_000_000], blob[1_000_000...]].map(Array.init))
            }
            let failed = await failure { _ = try await setting.read(.with { $0.digests = blobs.map(named) }) }
            #expect(failed == .invalidArgument)
            let large = body(9 << 20)
            let refused = await failure { try await setting.update([large]) }
            #expect(refused == .resourceExhausted)
        }
    }

    @Test(arguments: [1, 1_000, 300_000, 5_000_000]) func streams(length: Int) async throws {
        try await Setting.run { setting in
            let bytes = body(length)
            let pieces = stride(from: 0, to: length, by: 70_000).map { Array(bytes[$0..<min(length, $0 + 70_000)]) }
            let missing = await failure { _ = try await setting.read(blob(bytes)) }
            #expect(missing == .notFound)
            try await #expect(setting.write(upload(bytes), pieces) == Int64(length))
            try await #expect(setting.read(blob(bytes)) == bytes)
            try await #expect(setting.read(blob(bytes), offset: Int64(length / 2)) == Array(bytes[(length / 2)...]))
            try await #expect(setting.read(blob(bytes), offset: 1, limit: 10) == Array(bytes.dropFirst().prefix(10)))
            let far = await failure { _ = try await setting.read(blob(bytes), offset: Int64(length) + 1) }
            #expect(far == .outOfRange)
            // What is there need not be sent.
            try await #expect(setting.write(upload(bytes, "2"), [Array(pieces[0])], finishes: false) == Int64(length))
            try await #expect(setting.status(upload(bytes, "3")).complete)
        }
    }

    @Test func theEmptyBlob() async throws {
        try await Setting.run { setting in
            try await #expect(setting.read(blob([])) == [])
            try await #expect(setting.write(upload([]), [[]]) == 0)
            try await #expect(setting.store.figures().entryCount == 0)
        }
    }

    /// A client that lost its connection continues where it was.
    @Test func anUploadIsContinued() async throws {
        try await Setting.run { setting in
            let bytes = body(1_000_000)
            let (first, second) = (Array(bytes[..<400_000]), Array(bytes[400_000...]))
            try await #expect(setting.write(upload(bytes), [first], finishes: false) == 400_000)
            try await #expect(setting.status(upload(bytes)).committedSize == 400_000)
            try await #expect(setting.status(upload(bytes, "other")).committedSize == 0)
            let wrong = await failure { _ = try await setting.write(upload(bytes), [second], from: 500_000) }
            #expect(wrong == .invalidArgument)
            try await #expect(setting.write(upload(bytes), [second], from: 400_000) == 1_000_000)
            try await #expect(setting.read(blob(bytes)) == bytes)
            let gone = await failure { _ = try await setting.write(upload(body(9)), [[1]], from: 5) }
            #expect(gone == .invalidArgument)
        }
    }

    @Test func uploadsThatBrokeOffAreLimited() async throws {
        try await Setting.run(calls: { $0.resumableUploads = 2 }) { setting in
            let blobs = (0..<3).map { body(1_000, $0) }
            for blob in blobs { _ = try await setting.write(upload(blob), [Array(blob[..<500])], finishes: false) }
            try await #expect(setting.status(upload(blobs[0])).committedSize == 0)
            try await #expect(setting.status(upload(blobs[2])).committedSize == 500)
        }
    }

    @Test func uploadsThatAreNotValid() async throws {
        try await Setting.run { setting in
            let bytes = body(1_000)
            let attempts: [(String, [[UInt8]])] = [
                (upload(bytes), [body(1_000, 1)]),
                (upload(bytes), [Array(bytes[..<999])]),
                (upload(bytes), [bytes, [1]]),
                ("uploads/1/blobs/xyz/3", [[1, 2, 3]]),
                ("uploads/1/blobs/\(named(bytes).hash)/-1", [bytes]),
                ("uploads/1/blobs/\(named(bytes).hash)/99999999999999999999", [bytes]),
                ("uploads/1/compressed-blobs/zstd/\(named(bytes).hash)/1000", [bytes]),
                ("uploads/1/blobs/\(Digest.of([UInt8]()).hexadecimal)/103", [body(103)]),
                ("../uploads/1/blobs/\(named(bytes).hash)/1000", [bytes]),
                ("uploads/1", [bytes]), ("", [bytes]), (String(repeating: "/", count: 5_000), [bytes]),
            ]
            for (name, pieces) in attempts {
                let refused = await failure { _ = try await setting.write(name, pieces) }
                #expect(refused == .invalidArgument, "\(name)")
            }
            try await #expect(setting.store.figures().entryCount == 0)
            for name in ["blobs", "blobs/xyz/1", "blobs/\(named(bytes).hash)", "x/../blobs/\(named(bytes).hash)/1000"] {
                let refused = await failure { _ = try await setting.read(name) }
                #expect(refused == .invalidArgument, "\(name)")
            }
        }
    }

    @Test func trees() async throws {
        try await Setting.run { setting in
            let leaf = try Directory.with { $0.files = [.with { $0.name = "f" }] }.serializedBytes() as [UInt8]
            let middle = try (0..<5).map { number in
                try Directory.with {
                    $0.directories = [
                        .with {
                            $0.name = "leaf\(number)"
                            $0.digest = named(leaf)
                        }
                    ]
                }.serializedBytes() as [UInt8]
            }
            let root =
                try Directory.with {
                    $0.directories = middle.enumerated().map { index, bytes in
                        .with {
                            $0.name = "\(index)"
                            $0.digest = named(bytes)
                        }
                    }
                }.serializedBytes() as [UInt8]
            try await setting.update([root, leaf] + middle)
            let whole = try await setting.tree(.with { $0.rootDigest = named(root) })
            #expect(whole.count == 1 && whole[0].directories.count == 7 && whole[0].nextPageToken.isEmpty)
            let pages = try await setting.tree(
                .with {
                    $0.rootDigest = named(root)
                    $0.pageSize = 3
                })
            #expect(
                pages.map(\.directories.count) == [3, 3, 1] && pages.flatMap(\.directories) == whole[0].directories)
            let rest = try await setting.tree(
                .with {
                    $0.rootDigest = named(root)
                    $0.pageToken = pages[0].nextPageToken
                })
            #expect(rest.flatMap(\.directories) == Array(whole[0].directories[3...]))
            // What is missing below the root is left out.
            try await setting.store.remove(Key(Digest.of(leaf)))
            try await #expect(setting.tree(.with { $0.rootDigest = named(root) }).flatMap(\.directories).count == 6)
            let token = await failure {
                _ = try await setting.tree(
                    .with {
                        $0.rootDigest = named(root)
                        $0.pageToken = "x"
                    })
            }
            #expect(token == .invalidArgument)
            let absent = await failure { _ = try await setting.tree(.with { $0.rootDigest = named(body(3)) }) }
            #expect(absent == .notFound)
            try await setting.update([body(50, 1)])
            let wrong = await failure { _ = try await setting.tree(.with { $0.rootDigest = named(body(50, 1)) }) }
            #expect(wrong == .failedPrecondition)
        }
    }

    /// What a client was told to be there stays, however much comes after it.
    @Test func blobsThatWereFoundStay() async throws {
        try await Setting.run(
            store: .testing(budget: Budget(bytes: .mebibytes(8))), objects: { $0.promiseTime = .seconds(600) }
        ) { setting in
            let kept = body(100_000, 1)
            // Stored by something else, without a lease.
            try await setting.store.put(kept, for: Key(Digest.of(kept)))
            try await #expect(setting.missing(of: [named(kept)]).isEmpty)
            for number in 0..<200 { try await setting.store.put(body(100_000, number + 2), for: Key("file \(number)")) }
            #expect(try await setting.store.figures().displacedCount > 0)
            try await #expect(setting.read(blob(kept)) == kept)
        }
    }

    /// A store that is too small for one build says so.
    @Test func aBuildThatDoesNotFit() async throws {
        try await Setting.run(store: .testing(budget: Budget(bytes: .mebibytes(4)))) { setting in
            var codes: Set<Int32> = []
            for number in 0..<60 {
                let bytes = body(100_000, number)
                let response = try await setting.update(
                    .with {
                        $0.requests = [
                            .with {
                                $0.digest = named(bytes)
                                $0.data = Data(bytes)
                            }
                        ]
                    })
                codes.formUnion(response.responses.map(\.status.code))
            }
            #expect(codes == [0, 8] && setting.objects.figures.uploadsWithoutRoom > 0)
        }
    }

    /// A lease that was not written is not counted on.
    @Test func anUploadThatIsRepeatedStays() async throws {
        try await Setting.run(
            store: .testing(budget: Budget(bytes: .mebibytes(8))), objects: { $0.promiseTime = .seconds(600) }
        ) { setting in
            let kept = body(100_000, 1)
            try await setting.update([kept])
            try await setting.update([kept])
            // Another process cleared the store.
            try await setting.store.perform { try $0.clear() }
            try await setting.update([kept])
            for number in 0..<200 { try await setting.store.put(body(100_000, number + 2), for: Key("file \(number)")) }
            try await #expect(setting.missing(of: [named(kept)]).isEmpty)
        }
    }

    @Test func objectsAreLimited() async throws {
        try await Setting.run(objects: { $0.connections.limits.bodyBytes = 1_000 }) { setting in
            let refused = await failure { _ = try await setting.write(upload(body(1_001)), [body(1_001)]) }
            #expect(refused == .invalidArgument)
            try await #expect(setting.write(upload(body(1_000)), [body(1_000)]) == 1_000)
        }
    }

    /// All bytes are there, and the client did not say that it is done.
    @Test func anUploadWithoutAnEnd() async throws {
        try await Setting.run { setting in
            let bytes = body(1_000)
            try await #expect(setting.write(upload(bytes), [bytes], finishes: false) == 1_000)
            try await #expect(setting.read(blob(bytes)) == bytes)
        }
    }

    /// Many small blobs, as many as the capabilities allow.
    @Test func aBatchOfSmallBlobs() async throws {
        try await Setting.run { setting in
            let blobs = (0..<10_000).map { body(200, $0) }
            try await setting.update(blobs)
            let response = try await setting.read(.with { $0.digests = blobs.map(named) })
            let isSame = response.responses.map { Array($0.data) } == blobs
            #expect(isSame)
        }
    }
}
