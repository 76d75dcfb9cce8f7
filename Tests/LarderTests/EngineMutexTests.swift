import Locks
import Testing

@testable import Larder

/// What a lock guards goes with it. Swift has left it behind in some builds.
struct EngineMutexTests {
    private final class Guarded: Sendable {}

    private final class Owner: Sendable {
        let lock: EngineMutex<Guarded?>
        init(_ guarded: Guarded) { lock = EngineMutex(guarded) }
    }

    private enum Part: Sendable { case some([UInt8], Guarded) }

    @Test func aLocalLockLetsGo() {
        weak var guarded: Guarded?
        do {
            let value = Guarded()
            guarded = value
            let lock = EngineMutex<Result<Guarded, any Error>?>(.success(value))
            lock.withLock { _ in }
        }
        #expect(guarded == nil)
    }

    @Test func theLockOfAnObjectLetsGo() {
        weak var guarded: Guarded?
        do {
            let value = Guarded()
            guarded = value
            _ = Owner(value)
        }
        #expect(guarded == nil)
    }

    @Test func aValueThatIsReplacedIsLetGo() {
        weak var guarded: Guarded?
        let lock = EngineMutex<Part?>(nil)
        do {
            let value = Guarded()
            guarded = value
            lock.withLock { $0 = .some([1], value) }
        }
        #expect(guarded != nil)
        lock.withLock { $0 = nil }
        #expect(guarded == nil)
    }

    /// The result of work on a pool, where a leak kept the writers and the pieces of bodies.
    @Test func aResultOfThePoolIsLetGo() async throws {
        weak var guarded: Guarded?
        do {
            let value = try await IOPool.shared.run { Guarded() }
            guarded = value
        }
        #expect(guarded == nil)
    }
}
