import TestOrigin
import TestSupport
import Testing

/// Runs `body` with a workplace and an origin, which has `/a`, to be stored, and `/private`, not to be stored. Verifies
/// the store afterwards.
/// - Parameter option: for `verify`.
func withOrigin(
    verifyingWith option: String = "--json", _ body: (TestOrigin, Workplace) async throws -> Void
) async throws {
    let origin = try await TestOrigin.start()
    origin.script("/a", .ok("hello").header("Cache-Control", "max-age=600").header("ETag", "\"1\""))
    origin.script("/private", .ok("secret").header("Cache-Control", "no-store"))
    let place = try Workplace()
    do {
        try await body(origin, place)
    } catch {
        await origin.stop()
        throw error
    }
    await origin.stop()
    #expect(try await place.run("verify", option).status == 0)
}
