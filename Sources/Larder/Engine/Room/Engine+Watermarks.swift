extension Engine {
    /// How far the store is above the watermarks, in bytes: 0 if it is below them.
    struct Fill {
        var overHigh: Int64 = 0
        var overLow: Int64 = 0
    }

    /// How full the store will be after `mutation`. Free pages of the index count as room, and so do files that are
    /// about to be unlinked.
    func fill(_ mutation: Mutation) throws -> Fill {
        guard let writing else { return Fill() }
        let budget = mutation.state.budget
        var fill = Fill()
        if budget.bytes != .unlimited {
            let data = try writing.room.dataAllocated()
            let claimed = try writing.room.claimed(mutation.state) - mutation.stagedBytes - writing.reaper.queuedBytes
            let live = Double(claimed - data + (try mutation.liveIndexBytes()))
            let usable = Double(budget.usableBytes)
            fill.overHigh = Int64(max(0, live - usable * configuration.watermarks.high))
            fill.overLow = Int64(max(0, live - usable * configuration.watermarks.low))
        }
        if budget.freeDiskFloor > .zero {
            let lack = budget.freeDiskFloor.bytes - (try FileSystem.freeBytes(files.root)) - writing.reaper.queuedBytes
            fill.overHigh = max(fill.overHigh, lack)
            fill.overLow = max(fill.overLow, lack)
        }
        return fill
    }

    /// Starts background displacement if the store is above the high watermark now: for what no put notices.
    func steer() throws {
        let budget = try budget()
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
            isDisplacing.store(false, ordering: .relaxed)
        } else if fill.overHigh > 0 {
            isDisplacing.store(true, ordering: .relaxed)
        }
    }
}
