import TestSupport
import Testing

@testable import Larder

@Suite struct LeaseTests {
    /// A new lease looks at some rows for old ones, whatever number there are; all that are over go in time.
    @Test func leasesThatAreOverGoWithNewOnes() throws {
        let clock = TestClock()
        try withStore(configuration: .testing(clock: clock)) { store in
            func rows() throws -> Int { try store.engine.read { try $0.statistics(store.engine.index.leases).entries } }
            var held: [Lease] = []
            for number in 0..<200 { held.append(try store.lease(Key("k\(number)"), for: .seconds(10))) }
            try #expect(rows() == 200)
            clock.advance(by: .seconds(20))
            for number in 0..<40 { held.append(try store.lease(Key("l\(number)"), for: .seconds(100))) }
            try #expect(rows() < 60)
            // Rows that are gone already do not make it fail.
            held = []
            try store.put([1], for: "k")
            try store.flush()
            try #expect(rows() == 0)
        }
    }
}
