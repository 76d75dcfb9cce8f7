import Locks

/// The compressed form of a body that is put, computed once by the first thread that needs it: `DigestWorker` where
/// that keeps up, so that the put returns before.
final class CompressedForm: DigestWork {
    private enum State {
        case waiting([UInt8])
        /// Nil: the body is stored as it is.
        case known([UInt8]?)
    }

    private let state: EngineMutex<State>

    init(of body: [UInt8]) { state = EngineMutex(.waiting(body)) }

    func run() { _ = value }

    /// The gzip member; nil if it saves too little. Waits for a thread that is computing it.
    var value: [UInt8]? {
        state.withLock { state in
            switch state {
            case .known(let member): return member
            case .waiting(let body):
                let member = body.withUnsafeBytes { GzipWriter.compressed($0) }
                state = .known(member)
                return member
            }
        }
    }

    /// That of a body, if it is to be tried, being computed elsewhere or computed already.
    static func of(_ body: [UInt8], _ compression: Compression) -> CompressedForm? {
        guard compression.tries(body.count) else { return nil }
        let form = CompressedForm(of: body)
        if !DigestWorker.shared.accept(form, bytes: body.count) { form.run() }
        return form
    }
}
