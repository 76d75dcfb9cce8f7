import AsyncHTTPClient
import LarderHTTP

extension Error {
    /// The error that the client throws in the same case. Errors that only a cache has stay a `FetchError`: nothing is
    /// stored and loading is not allowed (`notCached`), or a policy failed.
    var asClientError: any Error {
        guard let error = self as? FetchError else { return self }
        switch error.code {
        case .cancelled: return Task.isCancelled ? CancellationError() : HTTPClientError.cancelled
        case .invalidURL: return error.transport?.cause ?? HTTPClientError.invalidURL
        case .timedOut: return error.transport?.cause ?? HTTPClientError.deadlineExceeded
        default: return error.transport?.cause ?? error
        }
    }
}
