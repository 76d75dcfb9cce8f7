import HTTPTestSupport
import TestOrigin

/// Runs `body` with an origin, which is stopped afterwards.
func withOrigin(
    _ otherwise: @escaping TestOrigin.Responder = { _ in .notFound }, _ body: (TestOrigin) async throws -> Void
) async throws {
    let origin = try await TestOrigin.start(otherwise)
    do {
        try await body(origin)
    } catch {
        await origin.stop()
        throw error
    }
    await origin.stop()
}
