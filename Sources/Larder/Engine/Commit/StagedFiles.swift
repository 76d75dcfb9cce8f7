import Locks

/// The names of this instance's staged files, and their end. Safe from any thread.
final class StagedFiles: EnginePart {
    let context: EngineContext
    private let instance: UInt64
    private let ledger: Ledger
    private let reaper: Reaper
    private let sequence = Atomic<UInt64>(1)
    private let staging = Atomic<Int>(0)

    init(context: EngineContext, instance: UInt64, ledger: Ledger, reaper: Reaper) {
        self.context = context
        self.instance = instance
        self.ledger = ledger
        self.reaper = reaper
    }

    /// A name for a file to stage, or to move to `trash/`.
    func nextToken() -> StagingToken {
        StagingToken(instance: instance, sequence: sequence.wrappingAdd(1, ordering: .relaxed).newValue)
    }

    /// Runs `body`, which stages a body that is going to be submitted at once.
    func whileStaging<R>(_ body: () throws -> R) rethrows -> R {
        staging.wrappingAdd(1, ordering: .acquiringAndReleasing)
        defer { staging.wrappingSubtract(1, ordering: .acquiringAndReleasing) }
        return try body()
    }

    /// How many threads of this process do so, their room taken.
    var stagingCount: Int { staging.load(ordering: .acquiring) }

    /// Unlinks a staged file that is not needed, and gives its reservation back.
    func discard(_ file: StagedFile) {
        // A file that cannot be unlinked keeps its reservation, as it keeps its blocks; the next sweep tries again.
        if (try? FileSystem.unlink(file.token.name, in: files.staging)) != nil { ledger.add(-file.reserved) }
    }

    /// As `discard`, without waiting for the disk: for threads that may run a task.
    func discardLater(_ file: StagedFile) { reaper.add(file.token.name, in: files.staging, bytes: file.reserved) }
}
