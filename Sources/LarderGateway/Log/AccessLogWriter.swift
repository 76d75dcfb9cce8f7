import Dispatch
import Synchronization
import SystemPackage

/// Writes the lines of the access log, away from the event loops, in the order in which they are handed over.
final class AccessLogWriter: Sendable {
    /// Lines that wait for a slow disk; what comes beyond is dropped and counted.
    private static let pendingLimit = 16 << 20

    let format: AccessLogConfiguration.Format
    private let descriptor: FileDescriptor
    private let isOwned: Bool
    private let queue = DispatchQueue(label: "larder.gateway.log")
    private let pending = Atomic<Int>(0)
    private let droppedLines = Atomic<Int>(0)

    /// Opens the file, for appending. Throws ``GatewayError``.
    init(_ configuration: AccessLogConfiguration) throws(GatewayError) {
        format = configuration.format
        isOwned = configuration.path != nil
        guard let path = configuration.path else {
            descriptor = .standardOutput
            return
        }
        do {
            descriptor = try FileDescriptor.open(
                FilePath(path), .writeOnly, options: [.append, .create, .closeOnExec],
                permissions: [.ownerReadWrite, .groupRead])
        } catch {
            throw GatewayError(.io, "the access log '\(path)' cannot be opened: \(error)")
        }
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
                _ = try descriptor.writeAll(lines)
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
        if isOwned { try? descriptor.close() }
    }
}
