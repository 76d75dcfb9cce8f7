/// A thread that hashes bodies while the callers that put them continue, as far as it keeps up.
///
/// What it takes on is bounded: beyond that callers hash for themselves, so that on a busy machine nothing is slower
/// than without it. One for every store of the process; the thread starts with the first body and stays.
final class DigestWorker: @unchecked Sendable, ProcessGlobal {
    // SAFETY: every variable is touched only under `monitor`. The one instance is never released, so its thread may
    // refer to it without counting. `shared` is written only in a child of fork(2), by its only thread.
    nonisolated(unsafe) private(set) static var shared = DigestWorker()

    static func prepare() { _ = shared }

    static func beginAgain() { replace(&shared, with: DigestWorker()) }

    /// Smaller bodies are hashed faster than handed over.
    static let leastBytes = 4 << 10
    /// Bytes taken on at most, or bodies where they are large.
    private static let byteLimit = 1 << 20
    private static let countLimit = 8

    private let monitor = Monitor()
    private var queue: [(digest: BodyDigest, bytes: Int)] = []
    private var head = 0
    private var pendingBytes = 0
    private var isWaiting = false
    private var isStarted = false
    private var isUnavailable = sysconf(Int32(_SC_NPROCESSORS_ONLN)) < 2

    /// The digest of `body`, being computed here or computed already.
    func digest(of body: [UInt8]) -> BodyDigest {
        if body.count < Self.leastBytes { return BodyDigest(Digest.of(body)) }
        let digest = BodyDigest(of: body)
        if !accept(digest, body.count) { _ = digest.value }
        return digest
    }

    private func accept(_ digest: BodyDigest, _ bytes: Int) -> Bool {
        monitor.locked {
            if isUnavailable || (pendingBytes + bytes > Self.byteLimit && queue.count - head >= Self.countLimit) {
                return false
            }
            if !isStarted {
                isStarted = true
                guard (try? WorkerThread { [unowned self] in work() }) != nil else {
                    isUnavailable = true
                    return false
                }
            }
            queue.append((digest, bytes))
            pendingBytes += bytes
            if isWaiting { monitor.signal() }
            return true
        }
    }

    private func work() {
        var done = 0
        while true {
            let next = monitor.locked { () -> (digest: BodyDigest, bytes: Int) in
                pendingBytes -= done
                while head == queue.count {
                    queue.removeAll(keepingCapacity: true)
                    head = 0
                    isWaiting = true
                    monitor.wait()
                    isWaiting = false
                }
                let next = queue[head]
                head += 1
                if head > 1024 {
                    queue.removeFirst(head)
                    head = 0
                }
                return next
            }
            _ = next.digest.value
            done = next.bytes
        }
    }
}
