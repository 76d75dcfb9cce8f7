/// Waits while a condition holds; ends with the task, so that a test's time limit ends it, too.
public func waitWhile(_ lasts: () async throws -> Bool) async throws {
    while try await lasts() { try await Task.sleep(for: .milliseconds(1)) }
}
