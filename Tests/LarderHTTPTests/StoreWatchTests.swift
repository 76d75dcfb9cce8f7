import Larder
import Logging
import Locks
import Testing

@testable import LarderHTTP

/// What is reported about a store that fails at some responses and not at others.
struct StoreWatchTests {
    @Test func aTroubleEndsWhenNothingHasFailedForAWhile() {
        let passed = Mutex(Duration.zero)
        let start = ContinuousClock.now
        let watch = StoreWatch(Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }) {
            start + passed.withLock { $0 }
        }
        let error = LarderError(.io, "no place")
        for _ in 0..<20 {
            watch.failed(.write, error, key: "large")
            watch.succeeded(.write)
            passed.withLock { $0 += .milliseconds(100) }
        }
        // One trouble, not twenty that begin and end.
        #expect(watch.troubles.map(\.count) == [20])
        watch.succeeded(.write)
        #expect(!watch.troubles.isEmpty)
        passed.withLock { $0 += StoreWatch.quiet }
        watch.succeeded(.write)
        #expect(watch.troubles.isEmpty)
        #expect(watch.failures == 20)
    }
}
