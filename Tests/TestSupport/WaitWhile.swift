/// Waits while a condition holds, for as long as that takes; throws when the task is cancelled.
///
/// For states that send no signal; see ``Latch`` and ``Counter`` for those that do.
public func waitWhile(_ lasts: () async throws -> Bool) async throws {
    while try await lasts() { try await Task.sleep(for: .milliseconds(1)) }
}
