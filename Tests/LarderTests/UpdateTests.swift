import Larder
import TestSupport
import Testing

/// Changing and removing an entry only if it is still the one that was read.
struct UpdateTests {
    @Test(arguments: [false, true]) func metadataIsReplacedAndTheBodyStays(isCommitted: Bool) throws {
        try withStore { store in
            let body = [UInt8](repeating: 7, count: 100_000)
            try store.put(body, for: "k", PutOptions(tags: ["t"], metadata: [1]))
            if isCommitted { try store.flush() }
            let entry = try #require(try store.get("k"))
            #expect(try store.update(entry, metadata: [2, 3], lifetime: .duration(.seconds(60))))
            let after = try #require(try store.get("k"))
            #expect(after.metadata == [2, 3])
            #expect(try after.body.bytes() == body)
            #expect(after.attributes.tags == ["t"])
            #expect(after.attributes.expires != nil)
        }
    }

    @Test func anotherEntryIsLeftAlone() throws {
        try withStore { store in
            try store.put([1], for: "body", PutOptions(metadata: [1]))
            try store.put([1], for: "metadata", PutOptions(metadata: [1]))
            try store.put([1], for: "gone", PutOptions(metadata: [1]))
            let old = try ["body", "metadata", "gone"].map { try #require(try store.get(Key($0))) }
            try store.put([2], for: "body", PutOptions(metadata: [1]))
            try store.put([1], for: "metadata", PutOptions(metadata: [9]))
            try store.remove("gone")
            for entry in old {
                #expect(try !store.update(entry, metadata: [5]))
                #expect(try !store.remove(entry))
            }
            #expect(try store.get("body")?.body.bytes() == [2])
            #expect(try store.get("metadata")?.metadata == [9])
            #expect(try store.get("gone") == nil)
        }
    }

    @Test func anUnchangedEntryIsRemoved() throws {
        try withStore { store in
            try store.put([1], for: "k")
            #expect(try store.remove(#require(try store.get("k"))))
            #expect(try !store.contains("k"))
        }
    }

    @Test func entriesInMemoryOnly() throws {
        try withStore { store in
            try store.put([1], for: "k", PutOptions(storagePolicy: .memoryOnly, metadata: [1]))
            let old = try #require(try store.get("k"))
            #expect(try store.update(old, metadata: [2]))
            #expect(try !store.update(old, metadata: [3]))
            #expect(try store.get("k")?.metadata == [2])
            #expect(try !store.remove(old))
            #expect(try store.remove(#require(try store.get("k"))))
            #expect(try store.get("k") == nil)
        }
    }

    @Test(arguments: [100, 100_000]) func aWriterIsReadWhileItWritesAndAfterwards(count: Int) async throws {
        try await withStore { store in
            let body = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
            let writer = try store.writer(for: "k")
            try await writer.write(Array(body[..<(count / 2)]))
            try await #expect(writer.bytes(in: 10..<20) == Array(body[10..<20]))
            try await #expect(writer.bytes(in: 0..<Int64(count)) == Array(body[..<(count / 2)]))
            try await writer.write(Array(body[(count / 2)...]))
            try await writer.commit()
            #expect(try await writer.bytes(in: 0..<Int64(count)) == body)
            try await store.remove("k")
            try await store.perform { try $0.flush() }
            try await #expect(writer.bytes(in: 0..<Int64(count)) == body)
        }
    }

    @Test(arguments: [100, 100_000]) func aCancelledWriterCanStillBeRead(count: Int) throws {
        try withStore { store in
            let body = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
            let writer = try store.writer(for: "k")
            try writer.write(body)
            writer.cancel()
            #expect(try writer.bytes(in: 0..<Int64(count)) == body)
            #expect(try !store.contains("k"))
        }
    }
}
