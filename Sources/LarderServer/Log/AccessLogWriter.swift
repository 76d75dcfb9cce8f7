import Dispatch
import Locks
import SystemPackage

/// Writes the lines of the access log, away from the event loops, in the order in which they are handed over.
final class AccessLogWriter: Sendable {
    /// Lines that wait for a slow disk; what comes beyond is dropped and counted.
    private static let pendingLimit = 16 << 20

    let format: AccessLogConfiguration.Format
    /// Replaced on the queue only.
    private let descriptor: Mutex<FileDescriptor>
    /// Nil for the standard output.
    private let path: FilePath?
    private let queue = DispatchQueue(label: "larder.gateway.log")
    private let pending = Atomic<Int>(0)
    private let droppedLines = Atomic<Int>(0)

    /// Opens the file, for appending. Throws ``GatewayError``.
    init(_ configuration: AccessLogConfiguration) throws(GatewayError) {
        format = configuration.format
        path = configuration.path.map { FilePath($0) }
        descriptor = Mutex(try path.map(Self.open) ?? .standardOutput)
    }

    private static func open(_ path: FilePath) throws(GatewayError) -> FileDescriptor {
        do {
            return try FileDescriptor.open(
                path, .writeOnly, options: [.append, .create, .closeOnExec], permissions: [.ownerReadWrite, .groupRead])
        } catch {
            throw GatewayError(
                .io, "the access log '\(path)' cannot be opened: \(error)", path: path, cause: error)
        }
    }

    /// Continues in the file that has the path now; false for the standard output, which stays. Lines that were passed
    /// before are written to the old file. After an error the old file is kept.
    func reopen() throws(GatewayError) -> Bool {
        guard let path else { return false }
        let new = try Self.open(path)
        let old = queue.sync {
            descriptor.withLock { descriptor in
                let old = descriptor
                descriptor = new
                return old
            }
        }
        // Every write to it has been answered for.
        try? old.close()
        return true
    }

    /// Bytes of lines that were given up, as the file took them too slowly or not at all.
    var droppedBytes: Int { droppedLines.load(ordering: .relaxed) }

    func write(_ lines: [UInt8]) {
        guard pending.add(lines.count, ordering: .relaxed).newValue <= Self.pendingLimit else {
            pending.subtract(lines.count, ordering: .relaxed)
            droppedLines.add(lines.count, ordering: .relaxed)
            return
        }
        queue.async { [self] in
            defer { pending.subtract(lines.count, ordering: .relaxed) }
            do {
                _ = try descriptor.withLock { $0 }.writeAll(lines)
            } catch {
                // A log that cannot be written must not keep answers from clients; the loss can be seen in the metrics.
                droppedLines.add(lines.count, ordering: .relaxed)
            }
        }
    }

    /// Returns when everything handed over is written, and closes the file.
    func close() {
        queue.sync {}
        // Nothing can be done about a failure any more: every write has been answered for.
        if path != nil { try? descriptor.withLock { $0 }.close() }
    }
}
