import TestSupport
import Testing

@testable import Larder

@Suite struct LifetimeTests {
    @Test func entriesWithoutALifetimeNeverExpire() throws {
        let clock = TestClock()
        try withStore(configuration: .testing(clock: clock)) { store in
            try store.put([1], for: "default")
            try store.put([1], for: "never", PutOptions(lifetime: .never))
            clock.advance(by: .seconds(100 * 365 * 86_400))
            try #expect(store.bytes("default") == [1])
            try #expect(store.bytes("never") == [1])
            try #expect(store.attributes(of: "never")?.expires == nil)
            try #expect(store.keys(.expired) == [])
        }
    }

    /// What an entry gets: its own lifetime, else the default, never more than the ceiling. Seconds; nil: never.
    @Test(
        arguments: [
            (nil, nil, Lifetime.standard, nil), (60, nil, .standard, 60), (60, nil, .never, nil),
            (60, nil, .duration(.seconds(5)), 5), (nil, 30, .standard, 30), (nil, 30, .never, 30),
            (60, 30, .standard, 30),
            (nil, 30, .duration(.seconds(5)), 5), (nil, 30, .duration(.seconds(500)), 30),
            (nil, nil, .duration(.zero), 0),
            (nil, nil, .duration(.seconds(-5)), 0), (nil, 0, .never, 0),
            (nil, nil, .duration(.seconds(Int64.max)), nil),
        ] as [(Int?, Int?, Lifetime, Int?)])
    func lifetimeIsOwnThenDefaultThenCeiling(
        _ standard: Int?, _ ceiling: Int?, _ asked: Lifetime, _ expected: Int?
    ) throws {
        let clock = TestClock()
        let configuration = Configuration.testing(clock: clock) {
            if let standard { $0.defaultLifetime = .duration(.seconds(standard)) }
            $0.maximumLifetime = ceiling.map { .seconds($0) }
        }
        try withStore(configuration: configuration) { store in
            let start = clock.now()
            try store.put([1], for: "k", PutOptions(lifetime: asked))
            try #expect(store.attributes(of: "k")?.expires == expected.map { start + .seconds($0) })
            guard let expected else { return }
            if expected > 0 {
                clock.advance(by: .seconds(expected) - .microseconds(1))
                try #expect(store.bytes("k") == [1])
                clock.advance(by: .microseconds(1))
            }
            try #expect(store.get("k") == nil)
        }
    }

    @Test(arguments: [StoragePolicy.permanent, .memoryOnly])
    func anEntryIsFreshForItsLifetimeByTheStoresClock(_ policy: StoragePolicy) throws {
        let clock = TestClock()
        try withStore(configuration: .testing(clock: clock)) { store in
            for isCommitted in [false, true] {
                let options = PutOptions(lifetime: .duration(.seconds(10)), storagePolicy: policy)
                try store.put([1], for: "k", options)
                if isCommitted { try store.flush() }
                let entry = try #require(try store.get("k"))
                #expect(store.isFresh(entry))
                clock.advance(by: .seconds(10) - .microseconds(1))
                #expect(store.isFresh(entry))
                clock.advance(by: .microseconds(1))
                #expect(!store.isFresh(entry))
                // A clock that is set back does not make it fresh again.
                clock.jump(by: .seconds(-3600))
                #expect(!store.isFresh(entry))
                try #expect(store.get("k") == nil)
            }
            try store.put([1], for: "never", PutOptions(storagePolicy: policy))
            let entry = try #require(try store.get("never"))
            clock.advance(by: .seconds(100 * 365 * 86_400))
            #expect(store.isFresh(entry))
        }
    }

    @Test func anExpiryInThePastIsAMissAtOnce() throws {
        let clock = TestClock()
        try withStore(configuration: .testing(clock: clock)) { store in
            for moment in [
                Timestamp(microseconds: .min), Timestamp(microseconds: -1), Timestamp(microseconds: 0), clock.now(),
            ] {
                try store.put([1], for: "k", PutOptions(lifetime: .until(moment)))
                try #expect(store.get("k") == nil)
                try store.flush()
                try #expect(store.get("k") == nil)
                try #expect(store.keys(.expired) == ["k"])
            }
            try store.put([1], for: "k", PutOptions(lifetime: .until(.distantFuture)))
            try #expect(store.bytes("k") == [1])
            try #expect(store.keys(.expired) == [])
        }
    }

    @Test func anExpiredEntryIsAMissForEveryoneButWhoAsksForIt() throws {
        let clock = TestClock()
        try withStore(configuration: .testing(clock: clock)) { store in
            for (key, length) in [("small", 10), ("large", 9000)] {
                try store.put(body(length), for: Key(key), PutOptions(lifetime: .duration(.seconds(10))))
            }
            for flushes in [false, true] {
                if flushes { try store.flush() }
                for (key, length) in [("small", 10), ("large", 9000)] {
                    try #expect(store.bytes(Key(key)) == (flushes ? nil : body(length)))
                    if !flushes { continue }
                    try #expect(store.contains(Key(key)) == false)
                    try #expect(store.withBody(of: Key(key)) { _ in 1 } == nil)
                    try #expect(store.get(Key(key), includingExpired: true)?.body.bytes() == body(length))
                    try #expect(store.attributes(of: Key(key)) != nil)
                }
                clock.advance(by: .seconds(10))
            }
            try #expect(store.keys(.expired) == ["small", "large"])
            try #expect(store.remove(.expired) == 2)
            try #expect(store.get("small", includingExpired: true) == nil)
        }
    }

    @Test func theLifetimeOfALiveEntryCanBeChanged() throws {
        let clock = TestClock()
        try withStore(configuration: .testing(clock: clock) { $0.maximumLifetime = .seconds(1000) }) { store in
            let start = clock.now()
            try store.put([1], for: "k", PutOptions(lifetime: .duration(.seconds(10))))
            try #expect(store.touch("k", lifetime: .duration(.seconds(100))) == true)
            try #expect(store.attributes(of: "k")?.expires == start + .seconds(100))
            clock.advance(by: .seconds(50))
            try #expect(store.bytes("k") == [1])
            // Without a lifetime only the access changes.
            try #expect(store.touch("k") == true)
            try #expect(store.attributes(of: "k")?.expires == start + .seconds(100))
            try #expect(store.attributes(of: "k")?.lastAccess == start + .seconds(50))
            // The ceiling holds here too.
            try #expect(store.touch("k", lifetime: .never) == true)
            try #expect(store.attributes(of: "k")?.expires == start + .seconds(1050))
            try #expect(store.touch("k", lifetime: .duration(.zero)) == true)
            try #expect(store.get("k") == nil)
            // Expired, but still there: a new lifetime revives it, which is what a validated response needs.
            try #expect(store.touch("k", lifetime: .duration(.seconds(5))) == true)
            try #expect(store.bytes("k") == [1])
        }
    }

    // MARK: Clocks that jump

    @Test(arguments: [Duration.seconds(3600), .seconds(365 * 86_400)])
    func aClockThatJumpsBackDoesNotResurrectWhatWasSeenExpired(_ jump: Duration) throws {
        let clock = TestClock()
        try withDirectory { path in
            let store = try Store(at: path, .testing(clock: clock))
            try store.put([1], for: "k", PutOptions(lifetime: .duration(.seconds(60))))
            try store.flush()
            clock.advance(by: .seconds(61))
            try #expect(store.get("k") == nil)
            clock.jump(by: .zero - jump)
            try #expect(store.get("k") == nil)
            try #expect(store.contains("k") == false)
            try #expect(store.keys(.expired) == ["k"])
            try finish(store)
            let again = try Store(at: path, .testing(clock: clock))
            try #expect(again.get("k") == nil)
            try finish(again)
        }
    }

    @Test(arguments: [Duration.seconds(3600), .seconds(365 * 86_400)])
    func aClockThatJumpsBackDoesNotImmortalise(_ jump: Duration) throws {
        let clock = TestClock()
        try withStore(configuration: .testing(clock: clock)) { store in
            try store.put([1], for: "before", PutOptions(lifetime: .duration(.seconds(60))))
            clock.advance(by: .seconds(30))
            clock.jump(by: .zero - jump)
            try store.put([1], for: "after", PutOptions(lifetime: .duration(.seconds(60))))
            clock.advance(by: .seconds(29))
            try #expect(store.bytes("before") == [1])
            clock.advance(by: .seconds(2))
            try #expect(store.get("before") == nil)
            try #expect(store.bytes("after") == [1])
            clock.advance(by: .seconds(30))
            try #expect(store.get("after") == nil)
        }
    }

    @Test func timeThatPassedUnseenBeforeTheJumpCounts() throws {
        let clock = TestClock()
        try withStore(configuration: .testing(clock: clock)) { store in
            try store.put([1], for: "k", PutOptions(lifetime: .duration(.seconds(60))))
            try store.flush()
            clock.advance(by: .seconds(120))
            clock.jump(by: .seconds(-110))
            try #expect(store.get("k") == nil)
        }
    }

    @Test func aClockThatJumpsForwardExpiresAndBackAgainDoesNotRevive() throws {
        let clock = TestClock()
        try withStore(configuration: .testing(clock: clock)) { store in
            try store.put([1], for: "k", PutOptions(lifetime: .duration(.seconds(60))))
            clock.jump(by: .seconds(86_400))
            try #expect(store.get("k") == nil)
            clock.jump(by: .seconds(-86_400))
            try #expect(store.get("k") == nil)
            // Entries put from now on live as long as they should.
            try store.put([2], for: "new", PutOptions(lifetime: .duration(.seconds(60))))
            clock.advance(by: .seconds(59))
            try #expect(store.bytes("new") == [2])
            clock.advance(by: .seconds(2))
            try #expect(store.get("new") == nil)
        }
    }

    @Test func storeTimeGoesOnAcrossReopeningWithAClockSetBack() throws {
        let clock = TestClock()
        try withDirectory { path in
            let first = try Store(at: path, .testing(clock: clock))
            try first.put([1], for: "k", PutOptions(lifetime: .duration(.seconds(60))))
            try first.close()
            clock.jump(by: .seconds(-365 * 86_400))
            let second = try Store(at: path, .testing(clock: clock))
            try #expect(second.bytes("k") == [1])
            clock.advance(by: .seconds(61))
            try #expect(second.get("k") == nil)
            try finish(second)
        }
    }

    /// Programs that open the store for a moment each: store time runs between them while it is ahead.
    @Test func lifetimesEndBetweenShortRunsAfterTheClockWasAhead() throws {
        let clock = TestClock()
        try withDirectory { path in
            func run(_ body: (Store) throws -> Void) throws {
                let store = try Store(at: path, .testing(clock: clock) { $0.bootIdentity = 76 })
                try body(store)
                try finish(store)
            }
            clock.jump(by: .seconds(86_400))
            try run { try $0.put([1], for: "ahead") }
            clock.jump(by: .seconds(-86_400))
            for round in 0..<3 {
                let key = Key("k\(round)")
                try run { try $0.put([2], for: key, PutOptions(lifetime: .duration(.seconds(20)))) }
                clock.advance(by: .seconds(10))
                // A program that only reads hears of it as well, and so does one that writes something else.
                try run { try #expect($0.bytes(key) == [2]) }
                clock.advance(by: .seconds(9))
                try run { store in
                    try #expect(store.bytes(key) == [2])
                    try store.put([3], for: "other")
                }
                clock.advance(by: .seconds(2))
                try run { store in
                    try #expect(store.get(key) == nil)
                    let age = try #require(try store.attributes(of: "other").map { store.now - $0.stored })
                    #expect(age >= .seconds(2) && age < .seconds(3))
                }
            }
            // The clock is set back again: that changes none of it.
            try run { try $0.put([4], for: "k", PutOptions(lifetime: .duration(.seconds(20)))) }
            clock.jump(by: .seconds(-3600))
            try run { try #expect($0.bytes("k") == [4]) }
            // In another run of the machine the uptime does not tell the time before.
            let latest = clock.now() + .seconds(86_400 + 3600)
            let restarted = TestClock(wall: clock.now() + .seconds(5), uptime: 1_000_000_000)
            let configuration = Configuration.testing(clock: restarted) { $0.bootIdentity = 77 }
            let store = try Store(at: path, configuration)
            #expect(store.now <= latest + .seconds(1) && store.now >= latest - .seconds(1))
            try #expect(store.bytes("k") == [4])
            restarted.advance(by: .seconds(21))
            try #expect(store.get("k") == nil)
            try finish(store)
            // The uptime of an application's own clock is not that of others.
            let own = TestClock(wall: restarted.now(), uptime: 50_000_000_000_000)
            let other = try Store(at: path, .testing(clock: own))
            #expect(other.now <= latest + .seconds(60))
            try finish(other)
        }
    }
}
