import Locks

/// The SHA-256 of a body that is put: known, or computed once by the first thread that needs it.
///
/// Hashing costs more than anything else in a put (10 us for 16 KiB, and 5 us to write them), and the digest is not
/// needed before the commit. So it is left to `DigestWorker` where that keeps up.
final class BodyDigest: DigestWork {
    private enum State {
        case waiting([UInt8])
        case known(Digest)
    }

    private let state: EngineMutex<State>

    init(_ digest: Digest) {
        state = EngineMutex(.known(digest))
    }

    /// The digest of `body`, which is held until it is computed.
    init(of body: [UInt8]) {
        state = EngineMutex(.waiting(body))
    }

    func run() { _ = value }

    /// Computes it now if no other thread has; waits for a thread that is computing it.
    var value: Digest {
        state.withLock { state in
            switch state {
            case .known(let digest): return digest
            case .waiting(let body):
                let digest = Digest.of(body)
                state = .known(digest)
                return digest
            }
        }
    }
}
