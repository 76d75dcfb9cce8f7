import HTTPScenarios
import HTTPTypes
import Testing

@testable import HTTPCaching

/// What is kept with a stored response can be read back.
struct EncodingTests {
    static func policy(
        _ lines: [String] = ["Cache-Control: max-age=60, stale-if-error=9", "ETag: W/\"a\"", "@Last-Modified: -99"]
    ) -> StoredPolicy {
        CacheRules(.gateway).policy(for: response(200, lines), requestTime: start, responseTime: start.after(1))
    }

    @Test func policyIsReadBackFromItsEncoding() {
        let policy = Self.policy()
        #expect(policy.encoded.count == StoredPolicy.encodedByteCount)
        #expect(StoredPolicy(encoded: policy.encoded) == policy)
        #expect(StoredPolicy(encoded: [0, 0] + policy.encoded) == nil)
        #expect(StoredPolicy(encoded: Array(policy.encoded.dropLast())) == nil)
    }

    @Test func policyEncodingIsTheDocumentedOne() {
        let policy = StoredPolicy(
            flags: [.noCache, .neverCombined], lifetimeSource: .maxAge, lifetimeMilliseconds: 60_000,
            initialAgeMilliseconds: 1_000,
            responseTime: Instant(milliseconds: 2), date: Instant(milliseconds: 1),
            lastModified: Instant(milliseconds: -1),
            staleWhileRevalidateSeconds: -1, staleIfErrorSeconds: 9, fingerprint: 0x0403_0201)
        let expected: [UInt8] =
            [1, 2, 1, 2, 1, 2, 3, 4] + [0x60, 0xEA, 0, 0, 0, 0, 0, 0] + [0xE8, 3, 0, 0, 0, 0, 0, 0] + [
                2, 0, 0, 0, 0, 0, 0, 0,
            ]
            + [1, 0, 0, 0, 0, 0, 0, 0] + [UInt8](repeating: 255, count: 16) + [9, 0, 0, 0, 0, 0, 0, 0]
        #expect(policy.encoded == expected)
    }

    @Test func damagedPoliciesAreRefusedOrHarmless() {
        let bytes = Self.policy().encoded
        for length in 0..<bytes.count { #expect(StoredPolicy(encoded: Array(bytes.prefix(length))) == nil) }
        for index in bytes.indices {
            for value in [UInt8(0), 0x7F, 0x80, 0xFF] {
                var damaged = bytes
                damaged[index] = value
                guard let policy = StoredPolicy(encoded: damaged) else { continue }
                _ = policy.isFresh(at: start)
                _ = policy.stalenessMilliseconds(at: Instant(milliseconds: .max))
                _ = policy.freshUntil
            }
        }
    }

    @Test func selectingFieldsAreReadBackFromTheirEncoding() throws {
        let fields = fields(["A: 1, 2", "Accept-Language: de, en;q=0.5"])
        let selecting = try #require(
            SelectingFields(vary: Array("Accept-Language, a, Missing, A".utf8), request: fields))
        #expect(selecting.fields.map(\.name) == ["a", "accept-language", "missing"])
        #expect(SelectingFields(encoded: selecting.encoded) == selecting)
        #expect(SelectingFields(encoded: []) == SelectingFields.none)
        for length in 1..<selecting.encoded.count {
            let cut = SelectingFields(encoded: Array(selecting.encoded.prefix(length)))
            #expect(cut == nil || cut!.fields.count < 3)
        }
    }

    @Test func policiesOfOtherOptionsAreMadeAnew() {
        let stored = StoredResponse(
            head: response(200, ["Cache-Control: s-maxage=60, max-age=1"]), requestTime: start, responseTime: start,
            body: .complete(length: 0),
            policy: CacheRules(.privateCache).policy(
                for: response(200, ["Cache-Control: s-maxage=60, max-age=1"]), requestTime: start, responseTime: start))
        guard case .serve = CacheRules(.gateway).reuse(request(), stored: [stored], now: start.after(9)) else {
            Issue.record("the shared cache should have used s-maxage")
            return
        }
        #expect(CacheRules(.gateway).plainHitAge(request(), policy: stored.policy, selecting: .none, now: start) == nil)
    }

    @Test func aCallersLifetimeReplacesTheResponses() {
        var policy = Self.policy(["Cache-Control: no-cache, max-age=0", "Age: 100"])
        policy.override(lifetimeSeconds: 30)
        #expect(policy.isFresh(at: start.after(30)) && !policy.isFresh(at: start.after(31)))
        #expect(policy.lifetimeSource == .override && policy.flags.isEmpty)
    }

    @Test func instantsSaturate() {
        #expect(Instant(seconds: .max).milliseconds == .max && Instant(seconds: .min).milliseconds == .min)
        #expect(Instant(milliseconds: .max).milliseconds(since: Instant(milliseconds: .min)) == .max)
        #expect(Instant(milliseconds: .min).milliseconds(since: Instant(milliseconds: .max)) == .min)
        #expect(Instant(milliseconds: -1).seconds == -1 && Instant(milliseconds: -1_000).seconds == -1)
        #expect(Instant(milliseconds: .max).advanced(byMilliseconds: 5).milliseconds == .max)
    }
}
