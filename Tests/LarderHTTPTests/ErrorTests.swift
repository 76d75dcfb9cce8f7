import HTTPTestSupport
import HTTPCaching
import HTTPTypes
import LarderHTTP
import Testing

/// What errors say, and to whom.
@Suite struct ErrorTests {
    private struct Underneath: Error, CustomStringConvertible {
        var description: String { "underneath" }
    }

    @Test func errorsHaveOneShape() {
        let transport = TransportError(
            .cannotConnect, mayHaveBeenSeen: false, endpoint: "example.org:80",
            "cannot connect to example.org:80: underneath", cause: Underneath())
        #expect("\(transport)" == "cannotConnect: cannot connect to example.org:80: underneath")
        #expect(transport.endpoint == "example.org:80" && transport.cause is Underneath)
        let fetch = FetchError(
            .origin, url: "http://example.org/", "http://example.org/ could not be loaded: \(transport.message)",
            cause: transport)
        #expect(
            "\(fetch)"
                == "origin: http://example.org/ could not be loaded: cannot connect to example.org:80: underneath")
        #expect(fetch.transport?.code == .cannotConnect)
        #expect(FetchError(.policyFailed, url: "http://a/", "", cause: Underneath()).transport == nil)
    }

    @Test func codesAreNamedAsTheyAreWritten() {
        #expect(
            FetchError.Code.allCases.map(\.description) == [
                "invalidURL", "notCached", "unknownPolicy", "policyFailed", "origin", "overloaded", "timedOut",
                "cancelled", "tooLarge",
            ])
        #expect(
            TransportError.Code.allCases.map(\.description) == [
                "invalidRequest", "cannotConnect", "overloaded", "timedOut", "closed", "incompleteResponse",
                "malformedResponse", "responseTooLarge", "requestBodyFailed", "cancelled",
            ])
        #expect(FetchError.Code.allCases.contains(.tooLarge) && FetchError.Code.origin != .overloaded)
    }

    @Test func theErrorOfAPolicyIsKept() async throws {
        struct Failing: ReusePolicy {
            func reuse(_ stored: StoredResponse, for request: HTTPRequest, now: Instant) throws -> Reuse {
                throw Underneath()
            }
        }
        try await Fixture.run { fixture in
            fixture.cache.configuration.registry.register(Failing(), id: 100)
            fixture.answer("x")
            _ = try await fixture.get()
            do {
                _ = try await fixture.get(Fixture.url, FetchOptions(policyID: 100))
                Issue.record("no error")
            } catch let error as FetchError {
                #expect(error.code == .policyFailed && error.cause is Underneath)
            }
        }
    }
}
