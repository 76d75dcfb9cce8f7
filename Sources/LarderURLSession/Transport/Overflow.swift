import CLarder
import Foundation

/// Bytes of a body that arrived before its reader asked for them, in a file without a name.
///
/// URLSession of Linux cannot be held back: see `docs/urlsession.md`. What is over a limit in memory waits here.
struct Overflow {
    /// Closes the descriptor with the last reference.
    private final class File: Sendable {
        let descriptor: Int32

        init() throws {
            let environment = ProcessInfo.processInfo.environment
            // /tmp is often memory. /var/tmp is for large files: https://refspecs.linuxfoundation.org/FHS_3.0/ (5.15).
            let directories = [environment["TMPDIR"], "/var/tmp", NSTemporaryDirectory()].compactMap { $0 }
            var failure: Int32 = ENOENT
            for directory in directories {
                var name = Array("\(directory)/larder-XXXXXX".utf8CString)
                // mkostemp(3): mode 0600, and never a file that exists.
                let descriptor = clarder_make_temporary(&name)
                guard descriptor >= 0 else {
                    failure = errno
                    continue
                }
                unlink(name)
                self.descriptor = descriptor
                return
            }
            throw Overflow.error(failure)
        }

        deinit { close(descriptor) }
    }

    private var file: File?
    private var start: Int64 = 0
    private var end: Int64 = 0
    /// What is before it has no blocks any more.
    private var punched: Int64 = 0
    /// Bytes that are read before their blocks go back to the file system.
    private static let punchedPiece: Int64 = 8 << 20

    /// What the file takes on the disk.
    var allocatedBytes: Int64 {
        var status = stat()
        guard let file, fstat(file.descriptor, &status) == 0 else { return 0 }
        return Int64(status.st_blocks) * 512
    }

    /// Bytes that wait.
    var count: Int64 { end - start }

    /// Adds bytes at the end.
    ///
    /// - Throws: `POSIXError`, for instance for a full disk. Nothing counts as added then.
    mutating func append(_ data: Data) throws {
        let file = try file ?? File()
        self.file = file
        try data.withUnsafeBytes { bytes in
            var written = 0
            while written < bytes.count {
                let rest = UnsafeRawBufferPointer(rebasing: bytes[written...])
                let count = pwrite(file.descriptor, rest.baseAddress, rest.count, off_t(end) + off_t(written))
                if count < 0 && errno == EINTR { continue }
                if count <= 0 { throw Self.error(count < 0 ? errno : EIO) }
                written += count
            }
        }
        end += Int64(data.count)
    }

    /// Takes bytes from the beginning; none if none wait.
    ///
    /// - Parameter limit: the most bytes to take.
    /// - Throws: `POSIXError`.
    mutating func take(_ limit: Int) throws -> [UInt8] {
        guard let file, count > 0 else { return [] }
        let wanted = Int(min(count, Int64(limit)))
        var bytes = [UInt8](repeating: 0, count: wanted)
        var read = 0
        while read < wanted {
            let count = bytes.withUnsafeMutableBytes { target in
                let rest = UnsafeMutableRawBufferPointer(rebasing: target[read...])
                return pread(file.descriptor, rest.baseAddress, rest.count, off_t(start) + off_t(read))
            }
            if count < 0 && errno == EINTR { continue }
            if count <= 0 { throw Self.error(count < 0 ? errno : EIO) }
            read += count
        }
        start += Int64(wanted)
        if start == end {
            // The blocks go back to the file system; the next bytes are written from the beginning.
            _ = ftruncate(file.descriptor, 0)
            (start, end, punched) = (0, 0, 0)
        } else if start - punched >= Self.punchedPiece,
            clarder_punch_hole(file.descriptor, punched, start - punched) == 0
        {
            punched = start
        }
        return bytes
    }

    private static func error(_ code: Int32) -> POSIXError { POSIXError(POSIXErrorCode(rawValue: code) ?? .EIO) }
}
