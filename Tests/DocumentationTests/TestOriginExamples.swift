import TestOrigin
import Testing

// The Swift blocks of docs/testing.md: see Examples.swift.

enum TestOriginExamples {
    static func scripts() async throws {
        let origin = try await TestOrigin.start { _ in .ok("hello").header("Cache-Control", "max-age=60") }
        let gate = Gate()
        origin.script("/slow", .ok("first"), .ok("second and later").holding(at: gate))
        // requests to origin.url + "/slow"
        await gate.arrival()
        gate.open()
        #expect(origin.requests(for: "/slow").count == 2)
        await origin.stop()
    }
}
