import HTTPCaching
import HTTPTestSupport
import Larder
import TestSupport
import Testing

@testable import LarderHTTP

/// Ranges of a response of which parts are stored, on the short way.
struct PlainPartTests {
    private static let length: Int64 = 300_000

    /// A fixture with two ranges of a response in one part.
    private static func run(_ body: (Fixture) async throws -> Void) async throws {
        try await Fixture.run(store: { $0.encryption = nil }) { fixture in
            fixture.serveRanges(of: length)
            for range in [Int64(0)..<1_000, 200_000..<290_000] {
                _ = try await fixture.getRange(range)
                await fixture.cache.drain()
            }
            #expect(try fixture.parts.count == 1)
            try await body(fixture)
        }
    }

    @Test func aRangeThatOnePartHasIsAHit() async throws {
        try await Self.run { fixture in
            for (value, range) in [
                ("bytes=0-999", Int64(0)..<1_000), ("bytes=5-5", 5..<6), ("bytes=200000-289999", 200_000..<290_000),
            ] {
                let found = fixture.plainPart(value)
                #expect(found?.range == range && found?.bytes == RangeOrigin.bytes(range), "\(value)")
            }
            for value in ["bytes=999-1000", "bytes=1000-1001", "bytes=-10", "bytes=0-", "bytes=300000-", "lines=1-2"] {
                #expect(fixture.plainPart(value) == nil, "\(value)")
            }
            #expect(fixture.plainPart(nil) == nil)
            #expect(fixture.plainPart("bytes=0-9", isHead: true) == nil)
            #expect(fixture.plainPart("bytes=0-9", longest: 9) == nil)
            #expect(fixture.plainPart("bytes=0-9", longest: 10) != nil)
            fixture.clock.advance(by: .seconds(61))
            #expect(fixture.plainPart("bytes=0-9") == nil)
        }
    }

    @Test func whatTheLongWayHasToJudgeIsNone() async throws {
        try await Self.run { fixture in
            let packages = fixture.cache.changes.responses.packages
            packages.arePresent.store(true, ordering: .relaxed)
            #expect(fixture.plainPart("bytes=0-9") == nil)
            packages.arePresent.store(false, ordering: .relaxed)
            #expect(fixture.plainPart("bytes=0-9") != nil)
            for part in try fixture.parts { _ = try await fixture.store.remove(part.key(Key(Fixture.url))) }
            try await fixture.store.perform { try $0.flush() }
            #expect(fixture.plainPart("bytes=0-9") == nil)
        }
    }

    /// It is read by threads that may wait.
    @Test func anEncryptedPartIsNone() async throws {
        let key = try Configuration.testKey
        try await Fixture.run(store: { $0.encryption = key }) { fixture in
            fixture.serveRanges(of: Self.length)
            _ = try await fixture.getRange(0..<1_000)
            await fixture.cache.drain()
            #expect(fixture.plainPart("bytes=0-9") == nil)
            try await #expect(fixture.getRange(0..<10).0.source == .hit)
        }
    }
}

extension Fixture {
    /// What the short way finds for a request with a range.
    fileprivate func plainPart(
        _ range: String?, isHead: Bool = false, longest: Int64 = .max
    ) -> (range: Range<Int64>, bytes: [UInt8])? {
        var found: (range: Range<Int64>, bytes: [UInt8])?
        Array((range ?? "").utf8).withUnsafeBytes { value in
            var conditions = PlainQuestion.Conditions()
            conditions.range = range == nil ? nil : value
            let question = PlainQuestion(isHead: isHead, conditions, longestPart: longest)
            cache.withPlainHit(Key(Self.url), question, HeldContentKinds<Int>(), values: { _ in nil }) { hit in
                guard case .part(let body) = hit.content, hit.status == 206 else { return }
                found = (hit.range, (try? body.bytes(in: hit.range)) ?? [])
            }
        }
        return found
    }
}
