import Synchronization

/// Whether the committer displaces in the background: from above the high watermark to below the low one. Safe from any
/// thread.
final class Watermarks: EnginePart {
    let context: EngineContext
    private let room: Room
    private let reaper: Reaper
    private let displacing = Atomic<Bool>(false)

    init(context: EngineContext, room: Room, reaper: Reaper) {
        self.context = context
        self.room = room
        self.reaper = reaper
    }

    /// True while the store is above the high watermark, and until it is below the low one.
    var isDisplacing: Bool { displacing.load(ordering: .relaxed) }

    func startDisplacing() { displacing.store(true, ordering: .relaxed) }

    func endDisplacing() { displacing.store(false, ordering: .relaxed) }

    /// How far the store is above the watermarks, in bytes: 0 if it is below them.
    struct Fill {
        var overHigh: Int64 = 0
        var overLow: Int64 = 0
    }

    /// How full the store will be after `mutation`. Free pages of the index count as room, and so do files that are
    /// about to be unlinked.
    func fill(_ mutation: Mutation) throws -> Fill {
        let budget = mutation.state.budget
        var fill = Fill()
        if budget.bytes != .unlimited {
            let data = try room.dataAllocated()
            let claimed = try room.claimed(mutation.state) - mutation.blobs.stagedBytes - reaper.queuedBytes
            let live = Double(claimed - data + (try mutation.liveIndexBytes()))
            let usable = Double(budget.usableBytes)
            fill.overHigh = Int64(max(0, live - usable * configuration.watermarks.high))
            fill.overLow = Int64(max(0, live - usable * configuration.watermarks.low))
        }
        if budget.freeDiskFloor > .zero {
            let lack = budget.freeDiskFloor.bytes - (try FileSystem.freeBytes(files.root)) - reaper.queuedBytes
            fill.overHigh = max(fill.overHigh, lack)
            fill.overLow = max(fill.overLow, lack)
        }
        return fill
    }

    /// Starts background displacement if the store is above the high watermark now: for what no put notices.
    func steer() throws {
        let budget = try context.budget()
        if budget.bytes == .unlimited, budget.freeDiskFloor == .zero { return }
        do {
            let transaction = try index.environment.beginWrite()
            defer { transaction.abort() }
            let mutation = try Mutation(index: index, files: files, transaction: transaction, now: clock.advance())
            steer(try fill(mutation), displacedNothing: false)
        } catch {
            throw translate(error)
        }
    }

    /// Starts and ends background displacement.
    func steer(_ fill: Fill, displacedNothing: Bool) {
        if fill.overLow == 0 || displacedNothing {
            endDisplacing()
        } else if fill.overHigh > 0 {
            startDisplacing()
        }
    }
}
