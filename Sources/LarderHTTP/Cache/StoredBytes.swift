import Larder
import SystemPackage

/// Bytes in the store: a whole body, or some ranges of one in progress.
///
/// Later changes of the entry do not affect them, not even the completion of the body in progress.
package enum StoredBytes: Sendable {
    case complete(Body)
    case inProgress(PartialBody)

    /// The bytes of a range. Waits for the disk.
    ///
    /// - Parameter range: offsets from the start of the body; for one in progress, within one stored range.
    /// - Returns: as many bytes as the range has.
    /// - Throws: `LarderError`: `io`, `corruption`.
    package func bytes(in range: Range<Int64>) throws -> [UInt8] {
        switch self {
        case .complete(let body): try body.bytes(in: range)
        case .inProgress(let body): try body.bytes(in: range)
        }
    }

    /// The bytes of a range, read on a thread that may wait for the disk.
    ///
    /// Parameter, result and errors are those of the synchronous form.
    package func bytes(in range: Range<Int64>) async throws -> [UInt8] {
        switch self {
        case .complete(let body): try await body.bytes(in: range)
        case .inProgress(let body): try await body.bytes(in: range)
        }
    }

    /// Runs `body` with the descriptor of the file that contains the bytes, at the same offsets; nil if they are in
    /// memory, or encrypted.
    ///
    /// - Parameter body: gets the descriptor, which is valid inside it only, and must not be written to or closed.
    /// - Returns: the result of `body`.
    /// - Throws: the errors of `body`.
    package func withFileDescriptor<R>(_ body: (FileDescriptor) throws -> R) rethrows -> R? {
        switch self {
        case .complete(let stored): try stored.withFileDescriptor(body)
        case .inProgress(let partial): try partial.withFileDescriptor(body)
        }
    }
}
