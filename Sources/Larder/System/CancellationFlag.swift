import Locks

/// Carries a task's cancellation to a thread.
final class CancellationFlag: Sendable {
    private let flag = Atomic<Bool>(false)

    var isSet: Bool { flag.load(ordering: .relaxed) }

    func set() { flag.store(true, ordering: .relaxed) }
}

/// Lets a cancelled task stop the work done for it: the work asks here, on any thread, and throws `CancellationError`.
package enum Cancellation {
    /// That of the task a thread works for.
    @TaskLocal fileprivate static var flag: CancellationFlag?

    /// True if the task is cancelled that runs this, or that this thread works for.
    static var isCancelled: Bool { flag?.isSet ?? Task.isCancelled }

    /// Runs `body` to its end, even if the task is cancelled.
    package static func masked<R>(_ body: () throws -> R) rethrows -> R {
        try $flag.withValue(CancellationFlag(), operation: body)
    }

    /// Throws `CancellationError` if the task was cancelled. Long loops call it once a batch.
    package static func check() throws {
        if isCancelled { throw CancellationError() }
    }
}

extension IOPool {
    /// As `run`; `body` can ask `Cancellation` whether the task was cancelled.
    func runCancellable<R: Sendable>(_ body: @escaping @Sendable () throws -> R) async throws -> R {
        let flag = CancellationFlag()
        return try await withTaskCancellationHandler {
            try await run { try Cancellation.$flag.withValue(flag, operation: body) }
        } onCancel: {
            flag.set()
        }
    }
}
