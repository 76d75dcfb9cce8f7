import HTTPTypes
import Larder
import LarderHTTP
import LarderNIOTransport
import LarderObjects
import SeededData
import TestSupport
import Testing

/// A server over a store, and a client of it.
struct Setting: Sendable {
    let server: ObjectServer
    let store: Store
    let transport: NIOTransport

    var port: Int { server.address?.port ?? 0 }

    static func run(
        store configuration: Configuration = .testing(), _ change: (inout ObjectServerConfiguration) -> Void = { _ in },
        _ body: (Setting) async throws -> Void
    ) async throws {
        try await withStore(configuration: configuration) { store in
            var configuration = ObjectServerConfiguration()
            configuration.connections.eventLoops = 1
            configuration.connections.logger.logLevel = .critical
            change(&configuration)
            let server = try await ObjectServer.start(configuration, store: store)
            let transport = NIOTransport()
            let result: Result<Void, any Error>
            do {
                result = .success(try await body(Setting(server: server, store: store, transport: transport)))
            } catch {
                result = .failure(error)
            }
            await transport.close()
            await server.stop(drain: .seconds(5))
            try result.get()
        }
    }

    /// What a request got.
    struct Reply {
        var status: Int
        var fields: HTTPFields
        var bytes: [UInt8]
        var text: String { String(decoding: bytes, as: UTF8.self) }
    }

    func send(
        _ method: String, _ path: String, _ bytes: [UInt8]? = nil, _ fields: HTTPFields = [:]
    ) async throws -> Reply {
        let head = HTTPRequest(
            method: HTTPRequest.Method(method)!, scheme: "http", authority: "127.0.0.1:\(port)", path: path,
            headerFields: fields)
        let response = try await transport.send(TransportRequest(head: head, body: bytes.map { RequestBody($0) }))
        var content: [UInt8] = []
        while let piece = try await response.body.next() { content += piece }
        return Reply(status: response.head.status.code, fields: response.head.headerFields, bytes: content)
    }

    func get(_ path: String, _ fields: HTTPFields = [:]) async throws -> Reply {
        try await send("GET", path, nil, fields)
    }

    func put(_ path: String, _ bytes: [UInt8], _ fields: HTTPFields = [:]) async throws -> Int {
        try await send("PUT", path, bytes, fields).status
    }

    /// Stores a blob, and returns its digest.
    func putBlob(_ bytes: [UInt8], prefix: String = "") async throws -> Digest {
        let digest = Digest.of(bytes)
        try await #expect(put("\(prefix)/cas/\(digest.hexadecimal)", bytes) == 200)
        return digest
    }
}

/// The name of an action.
func action(_ number: Int) -> String { Digest.of(Array("action \(number)".utf8)).hexadecimal }
