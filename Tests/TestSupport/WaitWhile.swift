import Foundation

/// Waits while a condition holds, for as long as that takes; throws when the task is cancelled.
///
/// For states that send no signal; see ``Latch`` and ``Counter`` for those that do.
public func waitWhile(_ lasts: () async throws -> Bool) async throws {
    while try await lasts() { try await Task.sleep(for: .milliseconds(1)) }
}

/// Holds the calling thread while a condition holds, for as long as that takes. For tests without tasks; see
/// `waitWhile`.
public func blockWhile(_ lasts: () throws -> Bool) rethrows {
    while try lasts() { Thread.sleep(forTimeInterval: 0.001) }
}

/// Returns when the task is cancelled, and not before.
public func untilCancelled() async {
    let isCancelled = Latch()
    await withTaskCancellationHandler {
        await isCancelled.wait()
    } onCancel: {
        isCancelled.open()
    }
}
