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

func get(_ path: String, _ fields: String...) -> String {
    "GET \(path) HTTP/1.1\r\nHost: test\r\n" + fields.map { $0 + "\r\n" }.joined() + "\r\n"
}
