import AsyncHTTPClient
import HTTPTypes
import LarderHTTP
import NIOCore
import NIOHTTP1

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// How a request of the client's takes its way: through the cache, or past it.
enum OutgoingRequest {
    /// Through the cache.
    case cached(HTTPRequest)
    /// Past it: a Unix socket, a request with TLS settings, a local address or a `Host` of its own, and everything that
    /// the client refuses, so that the error is the client's.
    case direct

    init(_ request: HTTPClientRequest) {
        guard request.tlsConfiguration == nil, request.localAddress == nil,
            let url = URL(string: request.url)?.absoluteString,
            let method = HTTPRequest.Method(request.method.rawValue),
            var head = try? HTTPCache.request(for: url, method: method)
        else {
            self = .direct
            return
        }
        for (name, value) in request.headers {
            guard let name = HTTPField.Name(name), HTTPField.isValidValue(value) else {
                self = .direct
                return
            }
            if name.canonicalName == "host" {
                guard value.lowercased() == head.authority?.lowercased() else {
                    self = .direct
                    return
                }
                continue
            }
            head.headerFields.append(HTTPField(name: name, value: value))
        }
        self = .cached(head)
    }
}

extension HTTPClientRequest.Body {
    /// The content as a cache reads it: for keys that take it in.
    var forCache: RequestBody {
        let reader = Reader(self)
        return RequestBody(length: nil) { try await reader.next() }
    }

    /// Holds the iterator of a content for the one reader it has; begins with the first piece that is asked for.
    private final class Reader: @unchecked Sendable {
        // SAFETY: the pull closure of a RequestBody is never called from two tasks at once.
        private let content: HTTPClientRequest.Body
        private var iterator: HTTPClientRequest.Body.AsyncIterator?

        init(_ content: HTTPClientRequest.Body) { self.content = content }

        func next() async throws -> [UInt8]? {
            var current = iterator ?? content.makeAsyncIterator()
            defer { iterator = current }
            while let buffer = try await current.next() {
                if buffer.readableBytes > 0 { return Array(buffer.readableBytesView) }
            }
            return nil
        }
    }
}
