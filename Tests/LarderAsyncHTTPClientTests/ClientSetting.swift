import AsyncHTTPClient
import CZlib
import Larder
import LarderAsyncHTTPClient
import LarderHTTP
import NIOCore
import NIOHTTP1
import TestOrigin
import TestSupport
import Testing

/// An origin, a client that caches and one that does not, both with the same configuration.
struct ClientSetting: Sendable {
    let origin: TestOrigin
    let client: CachingHTTPClient
    let plain: HTTPClient

    static func run(
        _ configuration: HTTPClient.Configuration = HTTPClient.Configuration(),
        cache: HTTPCacheConfiguration = CachingHTTPClient.cacheConfiguration,
        certificate: OriginCertificate? = nil, _ body: (ClientSetting) async throws -> Void
    ) async throws {
        let origin = try await TestOrigin.start(certificate: certificate)
        try await withStore { store in
            let client = CachingHTTPClient(store: store, configuration: configuration, cache: cache)
            let plain = HTTPClient(configuration: configuration)
            let result: Result<Void, any Error>
            do {
                result = .success(try await body(ClientSetting(origin: origin, client: client, plain: plain)))
            } catch {
                result = .failure(error)
            }
            try await client.shutdown()
            try await plain.shutdown()
            try result.get()
        }
        await origin.stop()
    }

    func request(_ path: String, _ fields: (String, String)...) -> HTTPClientRequest {
        var request = HTTPClientRequest(url: origin.url + path)
        for (name, value) in fields { request.headers.add(name: name, value: value) }
        return request
    }

    /// Asks the client that caches, and reads the whole content.
    func get(_ path: String, _ fields: (String, String)...) async throws -> (HTTPClientResponse, String) {
        var request = request(path)
        for (name, value) in fields { request.headers.add(name: name, value: value) }
        return try await answer(to: request)
    }

    func answer(to request: HTTPClientRequest) async throws -> (HTTPClientResponse, String) {
        let response = try await client.execute(request, timeout: .seconds(600))
        return (response, String(buffer: try await response.body.collect(upTo: 1 << 26)))
    }

    func text(_ request: HTTPClientRequest) async throws -> String { try await answer(to: request).1 }

    func status(_ request: HTTPClientRequest) async throws -> HTTPResponseStatus {
        try await answer(to: request).0.status
    }

    /// What the two clients throw for a request: at once, or while the content is read.
    func errors(_ request: HTTPClientRequest, timeout: TimeAmount = .seconds(600)) async -> (String, String) {
        let own = await Self.thrown {
            let response = try await client.execute(request, timeout: timeout)
            _ = try await response.body.collect(upTo: 1 << 26)
        }
        let plain = await Self.thrown {
            let response = try await self.plain.execute(request, timeout: timeout)
            _ = try await response.body.collect(upTo: 1 << 26)
        }
        return (own, plain)
    }

    static func thrown(_ body: () async throws -> Void) async -> String {
        do {
            try await body()
            return "nothing"
        } catch {
            return "\(type(of: error)) \(error)"
        }
    }
}

/// Bytes in the gzip format.
func gzip(_ bytes: [UInt8]) -> [UInt8] {
    var stream = z_stream()
    var input = bytes
    var output = [UInt8](repeating: 0, count: bytes.count + 1024)
    let size = Int32(MemoryLayout<z_stream>.size)
    precondition(deflateInit2_(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION, size) == Z_OK)
    let count = input.withUnsafeMutableBufferPointer { input in
        output.withUnsafeMutableBufferPointer { output in
            stream.next_in = input.baseAddress
            stream.avail_in = UInt32(input.count)
            stream.next_out = output.baseAddress
            stream.avail_out = UInt32(output.count)
            precondition(deflate(&stream, Z_FINISH) == Z_STREAM_END)
            return output.count - Int(stream.avail_out)
        }
    }
    deflateEnd(&stream)
    return Array(output[..<count])
}
