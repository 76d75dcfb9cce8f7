import LMDB
import Locks

/// What commits and displacement go by while a reader of some process holds on to a snapshot.
///
/// Safe from any thread: its state is in `Snapshots` and an atomic.
final class HeldSnapshots: EnginePart {
    let context: EngineContext
    private let ledger: Ledger
    private let known = Snapshots()
    /// Uptime when a put last waited for readers without success.
    private let lastVainWait = Atomic<UInt64>(0)

    init(context: EngineContext, ledger: Ledger) {
        self.context = context
        self.ledger = ledger
    }

    /// True if a snapshot was held when it was last looked.
    var mayBeHeld: Bool { known.mayBeHeld }

    /// Where displacement beside the held snapshot continues.
    var position: UInt64 {
        get { known.position }
        set { known.position = newValue }
    }

    /// The last page that the index had in a snapshot; nil: not known.
    func lastPage(of snapshot: UInt64) -> Int? { known.mark(snapshot)?.lastPage }

    /// The state to go by if some reader of some process has held one snapshot for 50 ms and more, and still does; nil
    /// otherwise. Asks those who can let go of theirs to do so.
    func held() throws -> Snapshots.Mark? {
        do throws(LMDBError) {
            let environment = index.environment
            guard let oldest = try environment.oldestReader(), oldest < (try environment.latestTransaction()) else {
                known.look(nil, at: uptime.uptime())
                return nil
            }
            let age = known.look(oldest, at: uptime.uptime())
            if age > 2_000_000 { PageWishes(ledger.words).ask() }
            guard known.mayBeHeld else { return nil }
            // A reader that was killed holds its snapshot until a process looks.
            if try environment.clearDeadReaders() > 0, try environment.oldestReader() != oldest {
                known.look(nil, at: uptime.uptime())
                return nil
            }
            return known.mark(oldest)
        } catch {
            throw translate(error)
        }
    }

    /// Bytes that puts may fill: while a snapshot is held also three quarters of the headroom, as pages freed since
    /// cannot be used.
    func usableBytes(_ budget: Budget) throws -> Int64 {
        guard budget.bytes != .unlimited, known.mayBeHeld, try held() != nil else { return budget.usableBytes }
        return budget.bytes.bytes - budget.headroom / 4
    }

    /// Notes what the index is like at the beginning of a write transaction.
    func note(_ mutation: Mutation) {
        let mark = Snapshots.Mark(
            transaction: mutation.reading.id - 1, lastPage: index.environment.lastPage, nextID: mutation.state.nextID,
            nextStamp: mutation.state.nextStamp)
        // Unknown readers only make the notes fewer: what follows from them is less room, never a wrong page.
        known.note(mark) { (try? index.environment.readers()) ?? [] }
    }

    /// True if a reader of some process holds pages that later commits have freed.
    func isAnyHeld() throws -> Bool {
        do throws(LMDBError) {
            return try index.environment.isSnapshotHeld()
        } catch {
            throw translate(error)
        }
    }

    /// Waits for readers that hold pages which later commits have freed; false if there are none, or they do not let
    /// go. A reader that does not end costs one long wait in ten seconds.
    func outlastReaders() throws -> Bool {
        let last = lastVainWait.load(ordering: .relaxed)
        guard try isAnyHeld(), last == 0 || uptime.uptime() &- last > 10_000_000_000 else { return false }
        for _ in 0..<200 {
            usleep(5000)
            if try !isAnyHeld() { return true }
        }
        lastVainWait.store(uptime.uptime(), ordering: .relaxed)
        return false
    }
}
