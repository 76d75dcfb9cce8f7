import Dispatch
import HTTPTypes
import Locks

/// The same for callers without a task.
extension HTTPCache {
    /// As `fetch(_:body:_:onInformational:)`, waiting on the calling thread: any thread except those of Swift's
    /// cooperative pool, which must not wait. A stored response is returned without a change of thread.
    ///
    /// - Parameters:
    ///   - request: scheme (`http` or `https`), authority, path and fields. Fields of one connection are not passed on.
    ///   - body: the request's content; nil for none.
    ///   - options: settings of this request that differ from the configuration.
    /// - Returns: the answer when its head has arrived; the body may still be arriving.
    /// - Throws: ``FetchError``, and nothing else.
    public func fetchAndWait(
        _ request: HTTPRequest, body: RequestBody? = nil, _ options: FetchOptions = FetchOptions()
    ) throws(FetchError) -> FetchResponse {
        switch try answerWaiting(request, hasContent: body != nil, body: body, options) {
        case .response(let response): return options.watched(response)
        case .load(let pending):
            let result = Self.wait { [self] () async -> Result<FetchResponse, FetchError> in
                do throws(FetchError) {
                    return .success(try await load(pending, body: body, onInformational: nil))
                } catch {
                    return .failure(error)
                }
            }
            return options.watched(try result.get())
        }
    }

    /// As `fetch(_:_:)` for a URL, waiting on the calling thread: any thread except those of Swift's cooperative pool.
    ///
    /// - Parameters:
    ///   - url: absolute, with `http` or `https`.
    ///   - options: settings of this request that differ from the configuration.
    /// - Returns: the answer when its head has arrived; the body may still be arriving.
    /// - Throws: ``FetchError``, ``FetchError/Code/invalidURL`` included.
    public func fetchAndWait(_ url: String, _ options: FetchOptions = FetchOptions()) throws(FetchError)
        -> FetchResponse
    {
        try fetchAndWait(Self.request(for: url), body: nil, options)
    }

    /// Runs `body` in a task and waits for it.
    static func wait<R: Sendable>(_ body: @escaping @Sendable () async -> R) -> R {
        let waiting = Waiting<R>()
        Task { waiting.set(await body()) }
        return waiting.wait()
    }
}

/// A value that a thread waits for.
private final class Waiting<Value: Sendable>: Sendable {
    private let value = Mutex<Value?>(nil)
    private let semaphore = DispatchSemaphore(value: 0)

    func set(_ new: Value) {
        value.withLock { $0 = new }
        semaphore.signal()
    }

    func wait() -> Value {
        while true {
            semaphore.wait()
            if let value = value.withLock({ $0 }) { return value }
        }
    }
}

extension ResponseBody {
    /// As `bytes(limit:)`, waiting on the calling thread: any thread except those of Swift's cooperative pool.
    ///
    /// - Parameter limit: the most that is read, in bytes. Default: 64 MiB.
    /// - Returns: all bytes.
    /// - Throws: ``FetchError`` if the origin broke off or the body is longer than the limit, `LarderError` if the
    ///   store cannot be read.
    public func bytesAndWait(limit: Int = 64 << 20) throws -> [UInt8] {
        try HTTPCache.wait { () async -> Result<[UInt8], any Error> in
            do { return .success(try await bytes(limit: limit)) } catch { return .failure(error) }
        }.get()
    }
}
