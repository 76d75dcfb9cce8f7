import Larder
import Locks

/// Uploads whose call ended before they were complete, and that may be continued.
final class SuspendedUploads: Sendable {
    /// Who uploads what. The name of an upload is its client's choice, so another client's is another upload.
    struct Name: Hashable {
        var user: String?
        var resource: String
    }

    /// An upload so far.
    struct Upload: Sendable {
        let writer: BodyWriter
        let offset: Int64
        fileprivate var end = ContinuousClock.now
    }

    private struct State {
        var uploads: [Name: Upload] = [:]
        /// In the order in which they broke off, with those that are gone.
        var order: [Name] = []
    }

    private let limit: Int
    private let byteLimit: Int64
    private let timeout: Duration
    private let state = Mutex(State())

    init(_ configuration: GRPCObjectServerConfiguration) {
        limit = configuration.resumableUploads
        byteLimit = configuration.resumableBytes
        timeout = configuration.resumeTimeout
    }

    /// How much of an upload is there; nil without one.
    func offset(of name: Name) -> Int64? {
        removeExpired()
        return state.withLock { $0.uploads[name]?.offset }
    }

    /// Hands an upload over to the call that continues it.
    func take(_ name: Name) -> Upload? {
        removeExpired()
        return state.withLock { $0.uploads.removeValue(forKey: name) }
    }

    /// Keeps what a call has written.
    /// - Parameter budget: of the store. What broke off must not displace what is whole.
    func keep(_ writer: BodyWriter, at offset: Int64, as name: Name, within budget: ByteCount) {
        let byteLimit = budget == .unlimited ? byteLimit : min(byteLimit, budget.bytes / 20)
        guard limit > 0, timeout > .zero, offset > 0, offset <= byteLimit else { return writer.cancel() }
        removeExpired()
        let upload = Upload(writer: writer, offset: offset, end: .now + timeout)
        let replaced = state.withLock { state -> [Upload] in
            var replaced: [Upload] = []
            if let old = state.uploads.updateValue(upload, forKey: name) { replaced.append(old) }
            state.order.removeAll { $0 == name || state.uploads[$0] == nil }
            state.order.append(name)
            var bytes = state.uploads.values.reduce(0) { $0 + $1.offset }
            while state.order.count > limit || bytes > byteLimit {
                bytes -= state.uploads[state.order[0]]?.offset ?? 0
                if let old = state.uploads.removeValue(forKey: state.order.removeFirst()) { replaced.append(old) }
            }
            return replaced
        }
        for upload in replaced { upload.writer.cancel() }
        // Not only with the next call: what is staged takes room.
        Task { [weak self, timeout] in
            try? await Task.sleep(for: timeout + .milliseconds(10))
            self?.removeExpired()
        }
    }

    func removeAll() {
        let all = state.withLock { state in
            defer { state = State() }
            return Array(state.uploads.values)
        }
        for upload in all { upload.writer.cancel() }
    }

    private func removeExpired() {
        let now = ContinuousClock.now
        let expired = state.withLock { state -> [Upload] in
            var expired: [Upload] = []
            while let name = state.order.first {
                guard let upload = state.uploads[name] else {
                    state.order.removeFirst()
                    continue
                }
                guard upload.end <= now else { break }
                state.order.removeFirst()
                state.uploads[name] = nil
                expired.append(upload)
            }
            return expired
        }
        for upload in expired { upload.writer.cancel() }
    }
}
