import Foundation
import Synchronization

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A delegate that records its calls.
final class Recorder: NSObject, URLSessionDataDelegate, URLSessionDownloadDelegate, Sendable {
    struct Record: Sendable {
        var response: URLResponse?
        var data = Data()
        var pieces = 0
        var bytes: Int64 = 0
        var error: (any Error)?
        var answer: Answer? { response.map { Answer(data, $0) } }
    }

    private struct State {
        var record = Record()
        var continuation: CheckedContinuation<Record, Never>?
        var isComplete = false
    }

    private let state = Mutex(State())
    private let keepsData: Bool
    private let onPiece: @Sendable (Int) -> Void
    private let credential: URLCredential?

    init(
        keepsData: Bool = true, credential: URLCredential? = nil, onPiece: @escaping @Sendable (Int) -> Void = { _ in }
    ) {
        self.keepsData = keepsData
        self.credential = credential
        self.onPiece = onPiece
    }

    /// Runs a data task in a session with this delegate.
    static func load(
        _ configuration: URLSessionConfiguration, _ request: URLRequest, _ recorder: Recorder = Recorder()
    ) async throws -> Record {
        let session = URLSession(configuration: configuration, delegate: recorder, delegateQueue: nil)
        let record = await recorder.run(session.dataTask(with: request))
        session.finishTasksAndInvalidate()
        if let error = record.error { throw error }
        return record
    }

    func run(_ task: URLSessionTask) async -> Record {
        task.resume()
        return await end()
    }

    func end() async -> Record {
        await withCheckedContinuation { continuation in
            let record = state.withLock { state -> Record? in
                if state.isComplete { return state.record }
                state.continuation = continuation
                return nil
            }
            if let record { continuation.resume(returning: record) }
        }
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping (URLSession.ResponseDisposition) -> Void
    ) {
        state.withLock { state in
            // After a challenge or a redirect, what came with the first response counts no more.
            state.record.response = response
            state.record.data = Data()
        }
        completionHandler(.allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        state.withLock { state in
            if keepsData { state.record.data.append(data) }
            state.record.pieces += 1
            state.record.bytes += Int64(data.count)
        }
        onPiece(data.count)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        completionHandler(credential == nil ? .cancelAuthenticationChallenge : .useCredential, credential)
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL
    ) {}

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        let (continuation, record) = state.withLock { state in
            state.isComplete = true
            state.record.error = error
            defer { state.continuation = nil }
            return (state.continuation, state.record)
        }
        continuation?.resume(returning: record)
    }
}
