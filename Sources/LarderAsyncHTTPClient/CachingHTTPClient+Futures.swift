import AsyncHTTPClient
import Logging
import NIOCore
import NIOHTTP1

/// The calls that give futures, for programs that do not await. The whole content comes in one buffer.
extension CachingHTTPClient {
    /// Sends GET.
    ///
    /// - Parameters:
    ///   - url: an absolute URL.
    ///   - deadline: when the answer has to be there. Default: none.
    ///   - logger: the logger of the request. Default: nothing is logged.
    /// - Returns: the answer with its content, or what `HTTPClient` throws.
    public func get(
        url: String, deadline: NIODeadline? = nil, logger: Logger? = nil
    ) -> EventLoopFuture<HTTPClient.Response> {
        execute(.GET, url: url, deadline: deadline, logger: logger)
    }

    /// Sends POST.
    ///
    /// - Parameters:
    ///   - url: an absolute URL.
    ///   - body: the content. Default: none.
    ///   - deadline: when the answer has to be there. Default: none.
    ///   - logger: the logger of the request. Default: nothing is logged.
    /// - Returns: the answer with its content, or what `HTTPClient` throws.
    public func post(
        url: String, body: HTTPClient.Body? = nil, deadline: NIODeadline? = nil, logger: Logger? = nil
    ) -> EventLoopFuture<HTTPClient.Response> {
        execute(.POST, url: url, body: body, deadline: deadline, logger: logger)
    }

    /// Sends PATCH.
    ///
    /// - Parameters:
    ///   - url: an absolute URL.
    ///   - body: the content. Default: none.
    ///   - deadline: when the answer has to be there. Default: none.
    ///   - logger: the logger of the request. Default: nothing is logged.
    /// - Returns: the answer with its content, or what `HTTPClient` throws.
    public func patch(
        url: String, body: HTTPClient.Body? = nil, deadline: NIODeadline? = nil, logger: Logger? = nil
    ) -> EventLoopFuture<HTTPClient.Response> {
        execute(.PATCH, url: url, body: body, deadline: deadline, logger: logger)
    }

    /// Sends PUT.
    ///
    /// - Parameters:
    ///   - url: an absolute URL.
    ///   - body: the content. Default: none.
    ///   - deadline: when the answer has to be there. Default: none.
    ///   - logger: the logger of the request. Default: nothing is logged.
    /// - Returns: the answer with its content, or what `HTTPClient` throws.
    public func put(
        url: String, body: HTTPClient.Body? = nil, deadline: NIODeadline? = nil, logger: Logger? = nil
    ) -> EventLoopFuture<HTTPClient.Response> {
        execute(.PUT, url: url, body: body, deadline: deadline, logger: logger)
    }

    /// Sends DELETE.
    ///
    /// - Parameters:
    ///   - url: an absolute URL.
    ///   - deadline: when the answer has to be there. Default: none.
    ///   - logger: the logger of the request. Default: nothing is logged.
    /// - Returns: the answer with its content, or what `HTTPClient` throws.
    public func delete(
        url: String, deadline: NIODeadline? = nil, logger: Logger? = nil
    ) -> EventLoopFuture<HTTPClient.Response> {
        execute(.DELETE, url: url, deadline: deadline, logger: logger)
    }

    /// Sends a request with any method.
    ///
    /// - Parameters:
    ///   - method: the method. Default: GET.
    ///   - url: an absolute URL.
    ///   - body: the content. Default: none.
    ///   - deadline: when the answer has to be there. Default: none.
    ///   - logger: the logger of the request. Default: nothing is logged.
    /// - Returns: the answer with its content, or what `HTTPClient` throws.
    public func execute(
        _ method: HTTPMethod = .GET, url: String, body: HTTPClient.Body? = nil, deadline: NIODeadline? = nil,
        logger: Logger? = nil
    ) -> EventLoopFuture<HTTPClient.Response> {
        do {
            let request = try HTTPClient.Request(url: url, method: method, body: body)
            return execute(request: request, deadline: deadline, logger: logger)
        } catch {
            return eventLoopGroup.any().makeFailedFuture(error)
        }
    }

    /// Sends a request.
    ///
    /// - Parameters:
    ///   - request: as for `HTTPClient`.
    ///   - deadline: when the answer has to be there. Default: none.
    ///   - logger: the logger of the request. Default: nothing is logged.
    /// - Returns: the answer with its content, or what `HTTPClient` throws; `ResponseAccumulator.ResponseTooBigError`
    ///   for a content that no buffer can hold.
    public func execute(
        request: HTTPClient.Request, deadline: NIODeadline? = nil, logger: Logger? = nil
    ) -> EventLoopFuture<HTTPClient.Response> {
        let loop = eventLoopGroup.any()
        let promise = loop.makePromise(of: HTTPClient.Response.self)
        promise.completeWithTask {
            try await self.accumulated(request, on: loop, deadline ?? .distantFuture, logger)
        }
        return promise.futureResult
    }

    private func accumulated(
        _ request: HTTPClient.Request, on loop: any EventLoop, _ deadline: NIODeadline, _ logger: Logger?
    ) async throws -> HTTPClient.Response {
        var modern = HTTPClientRequest(url: request.url.absoluteString)
        modern.method = request.method
        modern.headers = request.headers
        modern.tlsConfiguration = request.tlsConfiguration
        if let body = request.body {
            modern.body = .stream(
                WrittenBody(body, on: loop), length: body.contentLength.map { .known($0) } ?? .unknown)
        }
        let (response, body) = try await limited(by: deadline) { [modern] in
            // A closure that writes the content can be called again.
            let response = try await self.follow(modern, isReplayable: true, .distantFuture, logger, .init())
            return (response, try await Self.collected(response.body))
        }
        let history = try response.history.map { step in
            let request = try HTTPClient.Request(
                url: step.request.url, method: step.request.method, headers: step.request.headers,
                body: step.request.body == nil ? nil : request.body, tlsConfiguration: request.tlsConfiguration)
            return HTTPClient.RequestResponse(request: request, responseHead: step.responseHead)
        }
        return HTTPClient.Response(
            host: request.host, status: response.status, version: response.version, headers: response.headers,
            body: body, history: history)
    }

    /// As much as a buffer can hold.
    private static let mostBytes = Int(UInt32.max)

    private static func collected(_ body: HTTPClientResponse.Body) async throws -> ByteBuffer? {
        var result: ByteBuffer?
        for try await var piece in body {
            guard (result?.readableBytes ?? 0) + piece.readableBytes <= mostBytes else {
                throw ResponseAccumulator.ResponseTooBigError(maxBodySize: mostBytes)
            }
            if result == nil { result = piece } else { result?.writeBuffer(&piece) }
        }
        return result
    }
}
