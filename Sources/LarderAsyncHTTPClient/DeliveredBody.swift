import AsyncHTTPClient
import LarderHTTP
import NIOCore
import NIOHTTP1

/// The content of an answer as the client's callers get it: decompressed where the client's configuration says so, and
/// with the client's errors. Reads on as the caller does, so that a slow caller holds up the sender and not the memory.
struct DeliveredBody: AsyncSequence, Sendable {
    typealias Element = ByteBuffer

    private enum Source: Sendable {
        case cache(ResponseBody)
        case client(HTTPClientResponse.Body)
    }

    private let source: Source
    private let limit: ClientSettings.GrowthLimit?

    /// - Parameters:
    ///   - limit: how far the content may grow; nil for one that stays as it is.
    init(_ body: ResponseBody, limit: ClientSettings.GrowthLimit?) {
        source = .cache(body)
        self.limit = limit
    }

    /// As above, for an answer that did not come through the cache.
    init(_ body: HTTPClientResponse.Body, limit: ClientSettings.GrowthLimit?) {
        source = .client(body)
        self.limit = limit
    }

    /// The limit for an answer with these fields: nil unless the last coding is one that the client takes off.
    static func limit(
        _ limit: ClientSettings.GrowthLimit?, for headers: HTTPHeaders
    ) -> ClientSettings.GrowthLimit? {
        if headers.contains(name: "Content-Range") { return nil }
        let coding = headers[canonicalForm: "Content-Encoding"].first?.lowercased()
        return coding == "gzip" || coding == "deflate" ? limit : nil
    }

    func makeAsyncIterator() -> Iterator {
        switch source {
        case .cache(let body): Iterator(source: .cache(body.makeAsyncIterator()), limit: limit)
        case .client(let body): Iterator(source: .client(body.makeAsyncIterator()), limit: limit)
        }
    }

    struct Iterator: AsyncIteratorProtocol {
        fileprivate enum Source {
            case cache(ResponseBody.Iterator)
            case client(HTTPClientResponse.Body.AsyncIterator)

            mutating func next() async throws -> [UInt8]? {
                switch self {
                case .cache(var iterator):
                    defer { self = .cache(iterator) }
                    return try await iterator.next()
                case .client(var iterator):
                    defer { self = .client(iterator) }
                    return try await iterator.next().map { Array($0.readableBytesView) }
                }
            }
        }

        fileprivate var source: Source
        fileprivate let limit: ClientSettings.GrowthLimit?
        private var inflater: Inflater?

        fileprivate init(source: Source, limit: ClientSettings.GrowthLimit?) {
            self.source = source
            self.limit = limit
        }

        mutating func next() async throws -> ByteBuffer? {
            do {
                guard let limit else { return try await source.next().map { ByteBuffer(bytes: $0) } }
                let inflater = try inflater ?? Inflater(limit)
                self.inflater = inflater
                while true {
                    if let piece = try inflater.next() { return piece }
                    guard let piece = try await source.next() else {
                        try inflater.finish()
                        return nil
                    }
                    inflater.take(piece)
                }
            } catch {
                throw error.asClientError
            }
        }
    }
}
