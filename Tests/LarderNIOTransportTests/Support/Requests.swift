import HTTPTypes
import LarderHTTP
import LarderNIOTransport
import Testing

/// A request to a server of this process.
func get(
    _ server: ScriptedServer, _ path: String = "/", method: HTTPRequest.Method = .get, scheme: String = "http",
    fields: HTTPFields = [:], body: RequestBody? = nil, timeouts: Timeouts = Timeouts(),
    onInformational: (@Sendable (HTTPResponse) async -> Void)? = nil
) -> TransportRequest {
    TransportRequest(
        head: HTTPRequest(
            method: method, scheme: scheme, authority: server.authority, path: path, headerFields: fields),
        body: body, timeouts: timeouts, onInformational: onInformational)
}

// These throw any error: '#expect' cannot carry a typed one.
extension TransportBody {
    /// All of it as text.
    func text() async throws -> String {
        var bytes: [UInt8] = []
        while let piece = try await next() { bytes += piece }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The next piece as text.
    func piece() async throws -> String? { try await next().map { String(decoding: $0, as: UTF8.self) } }
}

extension NIOTransport {
    /// The content of a response.
    func text(_ request: TransportRequest) async throws -> String { try await send(request).body.text() }

    /// Sends a request whose response has to have this content.
    func send(
        _ request: TransportRequest, expecting content: String, _ location: SourceLocation = #_sourceLocation
    ) async throws {
        let text = try await text(request)
        #expect(text == content, sourceLocation: location)
    }
}

/// The error of a request that has to fail.
func failure<Value>(
    _ location: SourceLocation = #_sourceLocation, _ body: () async throws(TransportError) -> Value
) async -> TransportError? {
    do throws(TransportError) {
        _ = try await body()
        Issue.record("the request did not fail", sourceLocation: location)
        return nil
    } catch {
        return error
    }
}

/// Runs a transport, and closes it.
func withTransport<Result: Sendable>(
    _ configuration: NIOTransport.Configuration = .init(), _ body: (NIOTransport) async throws -> Result
) async throws -> Result {
    let transport = NIOTransport(configuration)
    do {
        let result = try await body(transport)
        await transport.close()
        return result
    } catch {
        await transport.close()
        throw error
    }
}
