import CLarder

/// Hashing that may be left to `DigestWorker`.
protocol DigestWork: Sendable {
    /// Hashes what is not hashed yet.
    func run()
}

/// A thread that hashes bodies while the callers that put them continue, as far as it keeps up.
///
/// What it takes on is bounded: beyond that callers hash for themselves, so that on a busy machine nothing is slower
/// than without it. One for every store of the process; the thread starts with the first body and stays. It does not
/// start where the caller with the first body may use one processor only.
final class DigestWorker: @unchecked Sendable, ProcessGlobal {
    // SAFETY: every variable is touched only under `monitor`. The one instance is never released, so its thread may
    // refer to it without counting. `shared` is written only in a child of fork(2), by its only thread.
    nonisolated(unsafe) private(set) static var shared = DigestWorker()

    static func prepare() { _ = shared }

    static func rehearse() {
        var other = DigestWorker()
        replace(&other, with: DigestWorker()).release()
    }

    static func beginAgain() { replace(&shared, with: DigestWorker()) }

    /// Smaller bodies are hashed faster than handed over.
    static let leastBytes = 4 << 10
    /// Bytes taken on at most, or bodies where they are large.
    private static let byteLimit = 1 << 20
    private static let countLimit = 8

    private let monitor = Monitor()
    private var queue: [(work: any DigestWork, bytes: Int)] = []
    private var head = 0
    private var pendingBytes = 0
    private var isWaiting = false
    private var isStarted = false
    private var isUnavailable = false
    private let processorCount: @Sendable () -> Int

    /// - Parameter processorCount: how many processors its thread may use; called when that starts.
    init(processorCount: @escaping @Sendable () -> Int = { Int(clarder_processors()) }) {
        self.processorCount = processorCount
    }

    /// The digest of `body`, being computed here or computed already.
    func digest(of body: [UInt8]) -> BodyDigest {
        if body.count < Self.leastBytes { return BodyDigest(Digest.of(body)) }
        let digest = BodyDigest(of: body)
        if !accept(digest, bytes: body.count) { digest.run() }
        return digest
    }

    /// True if it would take on that many more and not exceed its limit of bytes.
    func hasRoom(for bytes: Int) -> Bool {
        monitor.locked { !isUnavailable && pendingBytes + bytes <= Self.byteLimit }
    }

    /// Takes on work with that many bytes; false if it does not keep up.
    func accept(_ work: some DigestWork, bytes: Int) -> Bool {
        monitor.locked {
            if isUnavailable || (pendingBytes + bytes > Self.byteLimit && queue.count - head >= Self.countLimit) {
                return false
            }
            if !isStarted {
                isStarted = true
                // Where both share a processor, handing over is work that gains no time.
                guard processorCount() > 1, (try? WorkerThread { [unowned self] in runAll() }) != nil else {
                    isUnavailable = true
                    return false
                }
            }
            queue.append((work, bytes))
            pendingBytes += bytes
            if isWaiting { monitor.signal() }
            return true
        }
    }

    private func runAll() {
        var done = 0
        while true {
            let next = monitor.locked { () -> (work: any DigestWork, bytes: Int) in
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
            next.work.run()
            done = next.bytes
        }
    }
}
