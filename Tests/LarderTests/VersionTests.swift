import SystemPackage
import TestSupport
import Testing

@testable import Larder

/// Entries of another application version are misses and are reclaimed.
@Suite struct VersionTests {
    private func open(_ path: FilePath, _ version: String?) throws -> Store {
        try Store(at: path, .testing { $0.version = version })
    }

    @Test func entriesOfAnotherVersionAreMisses() throws {
        try withDirectory { path in
            let old = try open(path, "1.0")
            let new = try open(path, "2.0")
            let any = try open(path, nil)
            try old.put([1], for: "k")
            for flushes in [false, true] {
                if flushes { try old.flush() }
                try #expect(old.bytes("k") == [1])
                try #expect(new.get("k") == nil)
                try #expect(new.contains("k") == false)
                try #expect(new.withBody(of: "k") { _ in 1 } == nil)
                try #expect(any.bytes("k") == [1])
            }
            try new.put([2], for: "k")
            try #expect(new.bytes("k") == [2])
            try #expect(old.get("k") == nil)
            try #expect(any.attributes(of: "k")?.version == 2)
            try old.close()
            try new.close()
            try finish(any)
        }
    }

    @Test func versionsKeepTheirNumbers() throws {
        try withDirectory { path in
            for (version, number) in [("a", 1), ("b", 2), ("a", 1), ("c", 3)] {
                let store = try open(path, version)
                try store.put([1], for: Key(version))
                try #expect(store.attributes(of: Key(version))?.version == number)
                try finish(store)
            }
        }
    }

    @Test func entriesOfOtherVersionsAreReclaimed() throws {
        try withDirectory { path in
            let old = try open(path, "1.0")
            for number in 0..<300 { try old.put([UInt8(number % 256)], for: Key("k\(number)")) }
            try old.close()
            let new = try open(path, "2.0")
            try new.put([1], for: "new")
            // Opening does the same in the background; either way nothing old is left.
            try new.engine.removeEntries(ofOtherVersionsThan: #require(new.version))
            try new.collect()
            try #expect(new.keys() == ["new"])
            try finish(new)
        }
    }

    @Test func aStoreWithoutAVersionReclaimsNothing() throws {
        try withDirectory { path in
            let old = try open(path, "1.0")
            try old.put([1], for: "k")
            try old.close()
            let any = try open(path, nil)
            try any.collect()
            try #expect(any.bytes("k") == [1])
            try #expect(any.remove(.otherVersions) == 0)
            try finish(any)
        }
    }

    @Test func aReadOnlyStoreOfAnUnknownVersionSeesNothing() throws {
        try withDirectory { path in
            let old = try open(path, "1.0")
            try old.put([1], for: "k")
            try old.close()
            let reader = try Store(
                at: path,
                .testing {
                    $0.version = "9.9"
                    $0.isReadOnly = true
                })
            try #expect(reader.get("k") == nil)
            try reader.close()
        }
    }
}
