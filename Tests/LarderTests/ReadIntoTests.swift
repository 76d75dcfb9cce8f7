import SeededData
import TestSupport
import Testing

@testable import Larder

/// `read(_:into:)` and `Body.read(into:at:)`: into memory of the caller, wherever the body is.
@Suite struct ReadIntoTests {
    /// Where a body is when it is read.
    enum Place: String, CaseIterable, Sendable { case index, file, pending, pendingFile, memory }

    private func length(_ place: Place) -> Int {
        switch place {
        case .file, .pendingFile: 700_000
        default: 3000
        }
    }

    private func put(_ place: Place, _ store: Store) throws {
        var options = PutOptions()
        if place == .memory { options.storagePolicy = .memoryOnly }
        try store.put(body(length(place)), for: "key", options)
        if place == .index || place == .file { try store.flush() }
    }

    private func read(_ store: Store, _ count: Int) throws -> (found: Int?, bytes: [UInt8]) {
        var bytes = [UInt8](repeating: 1, count: count)
        let found = try bytes.withUnsafeMutableBytes { try store.read("key", into: $0) }
        return (found, bytes)
    }

    @Test(arguments: Place.allCases) func theBytesAreInTheBuffer(_ place: Place) throws {
        try withStore(configuration: .testing { $0.commitDelay = .seconds(60) }) { store in
            try put(place, store)
            let expected = body(length(place))
            let exact = try read(store, expected.count)
            #expect(exact.found == expected.count && exact.bytes == expected)
            // More than there is stays as it was.
            let longer = try read(store, expected.count + 100)
            #expect(longer.found == expected.count)
            #expect(longer.bytes == expected + [UInt8](repeating: 1, count: 100))
            // Less than there is gets the first of them, and the length tells.
            let shorter = try read(store, 1000)
            #expect(shorter.found == expected.count && shorter.bytes == Array(expected[..<1000]))
            let none = try read(store, 0)
            #expect(none.found == expected.count)
        }
    }

    @Test func aMissLeavesTheBuffer() throws {
        try withStore { store in
            let missed = try read(store, 10)
            #expect(missed.found == nil && missed.bytes == [UInt8](repeating: 1, count: 10))
            try store.put([], for: "key")
            #expect(try read(store, 10).found == 0)
        }
    }

    @Test(arguments: Place.allCases) func aBodyIsReadFromAnyOffset(_ place: Place) throws {
        try withStore(configuration: .testing { $0.commitDelay = .seconds(60) }) { store in
            try put(place, store)
            let expected = body(length(place))
            let found = try #require(try store.get("key")).body
            for (offset, count) in [(0, 10), (2990, 10), (expected.count - 3, 10), (expected.count, 5), (9_000_000, 5)]
            {
                var bytes = [UInt8](repeating: 1, count: count)
                let copied = try bytes.withUnsafeMutableBytes { try found.read(into: $0, at: Int64(offset)) }
                let part = Array(expected.dropFirst(offset).prefix(count))
                #expect(copied == part.count)
                #expect(bytes == part + [UInt8](repeating: 1, count: count - part.count))
            }
        }
    }
}
