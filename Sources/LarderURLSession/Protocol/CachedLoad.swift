import Foundation
import HTTPTypes
import LarderHTTP
import Locks

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The load of one request of a session: through the cache, with redirects, cookies and credentials.
final class CachedLoad: Sendable {
    /// As many as Apple's URLSession follows, and that of Linux.
    private static let redirectLimit = 20

    private let caching: URLSessionCaching
    private let request: URLRequest
    private let events = LoadEvents()
    private let running = Mutex<Task<Void, Never>?>(nil)
    /// Why the load was ended from outside.
    private let ending = Mutex<URLError?>(nil)

    init(_ caching: URLSessionCaching, _ request: URLRequest) {
        self.caching = caching
        self.request = request
    }

    private var settings: SessionSettings { caching.settings }
    private var options: URLSessionCachingOptions { caching.options }

    // MARK: For a session

    /// Begins.
    ///
    /// - Parameters:
    ///   - task: the task of the session.
    ///   - wake: makes the session take the events; safe on any thread but that of the session.
    func start(_ task: URLSessionTask?, waking wake: @escaping @Sendable () -> Void) {
        running.withLock { running in
            running = Task { [self] in
                defer { caching.end(self) }
                do {
                    try caching.begin(self, request.url)
                    let priority = await Self.priority(of: task)
                    let (response, body) = try await response(priority: priority, wake)
                    try await deliver(response, body, isAsking: task?.delegate != nil, wake)
                } catch let error as Redirected {
                    await events.put([.redirect(error.request, error.response)], wake)
                } catch {
                    let error = ending.withLock { $0 } ?? Self.urlError(error, request.url)
                    await events.put([.failed(error)], wake)
                }
            }
        }
    }

    private static func priority(of task: URLSessionTask?) async -> FetchPriority {
        guard let task else { return .normal }
        #if canImport(FoundationNetworking)
            return await withCheckedContinuation { continuation in
                TaskThread.run { continuation.resume(returning: FetchPriority(task.priority)) }
            }
        #else
            return FetchPriority(task.priority)
        #endif
    }

    func takeEvents() -> [LoadEvent] { events.take() }

    func eventsWereDelivered() { events.delivered() }

    func cancel() {
        events.close()
        running.withLock { $0 }?.cancel()
    }

    /// Ends the load with an error, and returns when it uses the cache no more. The error may still be on its way to
    /// the session: a task that is suspended takes it when it is resumed.
    func end(_ code: URLError.Code, _ message: String) async {
        ending.withLock { $0 = URLError(code, request.url, message) }
        events.stopWaiting()
        let task = running.withLock { $0 }
        task?.cancel()
        await task?.value
    }

    private static func urlError(_ error: any Error, _ url: URL?) -> URLError {
        switch error {
        case let error as URLError: error
        case let error as FetchError: URLError(error, url)
        case is CancellationError: URLError(.cancelled, url, "the load was cancelled")
        default: URLError(.unknown, url, "\(error)", cause: error)
        }
    }

    /// - Parameter isAsking: whether the session may have a delegate that it asks for credentials.
    private func deliver(
        _ response: HTTPURLResponse, _ body: ResponseBody, isAsking: Bool, _ wake: @Sendable () -> Void
    ) async throws {
        #if canImport(FoundationNetworking)
            let response = isAsking ? response.withSafeChallenge : response.withoutChallenge
            if options.delivery == .whole {
                let limit = options.wholeBodyLimit
                let data: Data
                do {
                    data = Data(try await body.bytes(limit: limit))
                } catch let error as FetchError where error.code == .tooLarge {
                    throw URLError(
                        .dataLengthExceedsMaximum, request.url,
                        "the body has more than \(limit) bytes, the limit for a body in one piece "
                            + "(URLSessionCachingOptions.wholeBodyLimit)")
                }
                return await events.put([.response(response)] + (data.isEmpty ? [] : [.data(data)]) + [.finished], wake)
            }
        #endif
        await events.put([.response(response)], wake)
        let pieces = PiecesInFlight()
        for try await piece in body {
            await pieces.room()
            await events.put([.data(pieces.piece(piece))], wake)
        }
        await events.put([.finished], wake)
    }

    // MARK: Through the cache

    /// A redirect that the session follows.
    struct Redirected: Error {
        var request: URLRequest
        var response: HTTPURLResponse
    }

    /// The final response: follows redirects, and answers challenges from the stored credentials.
    func response(
        priority: FetchPriority, _ wake: (@Sendable () -> Void)? = nil
    ) async throws -> (HTTPURLResponse, ResponseBody) {
        var message = try OutgoingMessage(request, settings)
        var triedCredential: URLCredential?
        var redirects = 0
        while true {
            let answer = try await fetch(message, priority)
            let isFromNetwork = answer.source == .network
            if isFromNetwork { message.storeCookies(of: answer.head, settings) }
            let response = try response(answer, message.url)
            // Not with a stream, which can be sent once; not where the program has said who it is.
            if answer.head.status.code == 401, triedCredential == nil, message.fields[.authorization] == nil,
                message.canBeSentAgain, let credential = settings.credential(for: response),
                let value = credential.basicAuthorization
            {
                triedCredential = credential
                message.fields[.authorization] = value
                await Self.readToEnd(answer.body)
                continue
            }
            guard options.followsRedirects || wake == nil, let next = try message.redirected(by: response, settings)
            else { return (response, answer.body) }
            #if !canImport(FoundationNetworking)
                if wake != nil {
                    await Self.readToEnd(answer.body)
                    throw Redirected(request: next.urlRequest(like: request), response: response)
                }
            #endif
            redirects += 1
            guard redirects <= Self.redirectLimit else {
                throw URLError(
                    .httpTooManyRedirects, next.url, "\(Self.redirectLimit) redirects led to another redirect")
            }
            await Self.readToEnd(answer.body)
            if !next.isSameOrigin(as: message.url) { triedCredential = nil }
            message = next
        }
    }

    private func fetch(_ message: OutgoingMessage, _ priority: FetchPriority) async throws -> FetchResponse {
        var fetchOptions = options.fetch
        fetchOptions.priority = priority
        var http = try HTTPCache.request(for: message.urlText, method: message.method)
        http.headerFields = message.fields
        guard let cache = caching.cache else {
            throw URLError(.networkConnectionLost, request.url, "there is no shared cache")
        }
        settings.apply(request, to: &fetchOptions, &http, cache.configuration.timeouts)
        return try await cache.fetch(http, body: message.body?.requestBody, fetchOptions)
    }

    /// The answer of the cache as a session gets it.
    private func response(_ answer: FetchResponse, _ url: URL) throws -> HTTPURLResponse {
        var fields = answer.head.headerFields
        if !options.showsCacheFields {
            // The last line is the one that the cache has added.
            if let status = answer.cacheStatus {
                let values = fields[values: .cacheStatus]
                if values.last == status.fieldValue { fields[values: .cacheStatus] = values.dropLast() }
            }
            fields = NetworkFields.fromCache(
                fields, status: answer.head.status.code, isFromNetwork: answer.source == .network)
        } else {
            fields = NetworkFields.fromCache(fields, status: answer.head.status.code, isFromNetwork: true)
        }
        guard
            let response = HTTPURLResponse(
                url: url, statusCode: answer.head.status.code, httpVersion: "HTTP/1.1",
                headerFields: NetworkFields.dictionary(fields))
        else { throw URLError(.badServerResponse, url, "the response of \(url) cannot be represented") }
        return response
    }

    /// Reads a short body, so that it is stored and the connection stays; lets go of a long one.
    private static func readToEnd(_ body: ResponseBody) async {
        var rest = 64 << 10
        do {
            for try await piece in body {
                rest -= piece.count
                if rest < 0 { return }
            }
        } catch {
            // The answer that counts is another one.
        }
    }
}

extension FetchPriority {
    /// The priority of a task, 0 ... 1.
    init(_ priority: Float) {
        self =
            priority < URLSessionTask.defaultPriority
            ? .low : priority > URLSessionTask.defaultPriority ? .high : .normal
    }
}
