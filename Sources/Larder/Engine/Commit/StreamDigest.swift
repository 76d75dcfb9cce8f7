import Locks

/// The SHA-256 of a body that arrives in pieces. Its writer hands them to `DigestWorker` and continues, as far as that
/// keeps up; beyond that the writer hashes for itself.
///
/// Used by one thread at a time, beside the worker.
final class StreamDigest: DigestWork {
    /// Pieces that are not hashed yet, in order.
    private let waiting = EngineMutex<[[UInt8]]>([])
    /// Held while hashing, so that the pieces stay in order.
    private let hash = EngineMutex(IncrementalDigest())

    /// Appends the next bytes of the body.
    /// - Parameter isBeside: whether they may be hashed by the worker, which takes a copy of them.
    func update(_ bytes: UnsafeRawBufferPointer, isBeside: Bool) {
        let worker = DigestWorker.shared
        guard isBeside, bytes.count >= DigestWorker.leastBytes, worker.hasRoom(for: bytes.count) else {
            return hash.withLock {
                hashWaiting(&$0)
                $0.update(bytes)
            }
        }
        waiting.withLock { $0.append(Array(bytes)) }
        if !worker.accept(self, bytes: bytes.count) { run() }
    }

    /// The digest of all of them. To be called once.
    func finalize() -> Digest {
        hash.withLock {
            hashWaiting(&$0)
            return $0.finalize()
        }
    }

    /// No one asks for the digest any more.
    func cancel() { waiting.withLock { $0 = [] } }

    /// Hashes what waits, on any thread.
    func run() { hash.withLock { hashWaiting(&$0) } }

    private func hashWaiting(_ hash: inout IncrementalDigest) {
        while let piece = waiting.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) {
            piece.withUnsafeBytes { hash.update($0) }
        }
    }
}
