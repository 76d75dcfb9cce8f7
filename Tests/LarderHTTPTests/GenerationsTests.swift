import Larder
import Locks
import TestSupport
import Testing

@testable import LarderHTTP

/// What is being stored while its key is invalidated.
struct GenerationsTests {
    private let generations = Generations(TestClock())
    private let key = "http://a.example/1"

    private func guards(_ key: String) -> [(key: String, generation: UInt32)] { [(key, generations.current(key))] }

    @Test func whatWasAskedForBeforeIsNotStored() throws {
        let before = guards(key)
        generations.advance(key)
        #expect(generations.beginCommit(before) == nil)
        generations.endCommit(try #require(generations.beginCommit(guards(key))))
        let again = guards(key)
        generations.advanceAll()
        #expect(generations.beginCommit(again) == nil)
    }

    /// An invalidation that removes without waiting would miss what is stored a moment later.
    @Test(arguments: [true, false]) func anInvalidationWaitsForCommitsThatHaveBegun(_ isOfAll: Bool) async throws {
        let (first, second) = (
            try #require(generations.beginCommit(guards(key))), try #require(generations.beginCommit(guards(key)))
        )
        if isOfAll { generations.advanceAll() } else { generations.advance(key) }
        let events = Mutex<[String]>([])
        let isWaiting = Latch()
        async let invalidation: Void = {
            isWaiting.open()
            await generations.commitsEnd(under: isOfAll ? nil : [key])
            events.withLock { $0.append("removed") }
        }()
        await isWaiting.wait()
        events.withLock { $0.append("first") }
        generations.endCommit(first)
        // One that begins meanwhile was asked for after the invalidation, whether or not that waits yet.
        let later = try #require(generations.beginCommit(guards(key)))
        events.withLock { $0.append("second") }
        generations.endCommit(second)
        await invalidation
        #expect(events.withLock { $0 } == ["first", "second", "removed"])
        generations.endCommit(later)
    }

    @Test func othersAreNotWaitedFor() async throws {
        generations.advance(key)
        // Few keys share a number.
        let other = try #require((2...9).map { "http://a.example/\($0)" }.first { generations.current($0) == 0 })
        let commit = try #require(generations.beginCommit(guards(key)))
        generations.advance(key)
        await generations.commitsEnd(under: [other])
        generations.endCommit(commit)
        await generations.commitsEnd()
    }
}
