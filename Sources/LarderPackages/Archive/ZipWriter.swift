import CZip
import Larder
import Locks
import SystemPackage

/// Writes an archive: it collects members, and reads them when it closes the archive. libzip writes to a temporary file
/// and renames it, so that the archive exists either complete or not at all.
final class ZipWriter {
    /// A source of the bytes of a member.
    protocol Source: AnyObject {
        /// The length in bytes.
        var length: Int64 { get }
        /// Begins at the first byte, again if it is called again.
        func rewind() throws
        /// Fills the buffer; 0 at the end.
        func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int
    }

    let path: FilePath
    private let password: String?
    private var zip: OpaquePointer?
    private let failure = Failure()

    /// The error that a source has thrown: libzip reports only a number.
    private final class Failure {
        var error: (any Error)?
    }

    /// - Parameter password: encrypts with AES-256. Nil: does not.
    init(_ path: FilePath, password: String? = nil) throws {
        self.path = path
        self.password = password
        var number: Int32 = 0
        guard let opened = path.withPlatformString({ zip_open($0, ZIP_CREATE | ZIP_TRUNCATE, &number) }) else {
            throw ZipFailure.make(number, system: errno, path, nil)
        }
        zip = opened
    }

    deinit { if let zip { zip_discard(zip) } }

    /// Adds a member.
    /// - Parameters:
    ///   - modified: in seconds since 1970.
    ///   - isCompressed: false stores the bytes as they are.
    func add(_ name: String, _ source: any Source, modified: Int64, isCompressed: Bool = true) throws {
        guard let zip else { preconditionFailure("the archive is closed") }
        let bridge = Unmanaged.passRetained(Bridge(source, failure))
        guard let made = zip_source_function(zip, Bridge.callback, bridge.toOpaque()) else {
            bridge.release()
            throw ZipFailure.error(zip_get_error(zip), path, name)
        }
        let index = zip_file_add(zip, name, made, UInt32(ZIP_FL_ENC_UTF_8))
        if index < 0 {
            zip_source_free(made)
            throw ZipFailure.error(zip_get_error(zip), path, name)
        }
        let place = UInt64(index)
        // What an archive can name: 1980 to 2107, less a day for any time zone.
        zip_file_set_mtime(zip, place, time_t(clamping: min(max(modified, 315_619_200), 4_354_732_800)), 0)
        zip_set_file_compression(zip, place, isCompressed ? ZIP_CM_DEFLATE : ZIP_CM_STORE, 0)
        let mode = UInt32(S_IFREG | 0o644) << 16
        zip_file_set_external_attributes(zip, place, 0, UInt8(ZIP_OPSYS_UNIX), mode)
        if let password, zip_file_set_encryption(zip, place, UInt16(ZIP_EM_AES_256), password) != 0 {
            throw ZipFailure.error(zip_get_error(zip), path, name)
        }
    }

    /// Writes the archive.
    func close() throws {
        guard let open = zip else { return }
        // An archive without members is not written at all.
        let status = zip_close(open)
        if status == 0 {
            zip = nil
            return
        }
        let error = ZipFailure.error(zip_get_error(open), path)
        zip_discard(open)
        zip = nil
        if let cause = failure.error { throw cause }
        throw PackageError(.io, error.message, archive: path, cause: error.cause)
    }

    /// A source as libzip calls it: zip_source_function(3).
    private final class Bridge {
        private let source: any Source
        private let failure: Failure
        private var error = zip_error_t()

        init(_ source: any Source, _ failure: Failure) {
            self.source = source
            self.failure = failure
            zip_error_init(&error)
        }

        static let callback: zip_source_callback = { state, data, length, command in
            guard let state else { return -1 }
            let unmanaged = Unmanaged<Bridge>.fromOpaque(state)
            if command == ZIP_SOURCE_FREE {
                unmanaged.release()
                return 0
            }
            return unmanaged.takeUnretainedValue().run(command, data, length)
        }

        private func run(_ command: zip_source_cmd_t, _ data: UnsafeMutableRawPointer?, _ length: UInt64) -> Int64 {
            switch command {
            case ZIP_SOURCE_SUPPORTS:
                return [
                    ZIP_SOURCE_OPEN, ZIP_SOURCE_READ, ZIP_SOURCE_CLOSE, ZIP_SOURCE_STAT, ZIP_SOURCE_ERROR,
                    ZIP_SOURCE_FREE, ZIP_SOURCE_SUPPORTS,
                ].reduce(0) { $0 | (Int64(1) << Int64($1.rawValue)) }
            case ZIP_SOURCE_OPEN: return attempt { try source.rewind() }
            case ZIP_SOURCE_READ:
                var count = 0
                let status = attempt {
                    try Cancellation.check()
                    count = try source.read(
                        into: UnsafeMutableRawBufferPointer(start: data, count: Int(clamping: length)))
                }
                return status < 0 ? -1 : Int64(count)
            case ZIP_SOURCE_CLOSE: return 0
            case ZIP_SOURCE_STAT:
                guard let status = data?.assumingMemoryBound(to: zip_stat_t.self) else { return -1 }
                zip_stat_init(status)
                status.pointee.size = UInt64(source.length)
                status.pointee.valid |= UInt64(ZIP_STAT_SIZE)
                return Int64(MemoryLayout<zip_stat_t>.size)
            case ZIP_SOURCE_ERROR: return zip_error_to_data(&error, data ?? .init(bitPattern: 8)!, length)
            default:
                zip_error_set(&error, ZIP_ER_OPNOTSUPP, 0)
                return -1
            }
        }

        private func attempt(_ body: () throws -> Void) -> Int64 {
            do {
                try body()
                return 0
            } catch {
                failure.error = failure.error ?? error
                zip_error_set(&self.error, ZIP_ER_READ, EIO)
                return -1
            }
        }
    }
}

/// Bytes in memory as a member.
final class BytesSource: ZipWriter.Source {
    private let bytes: [UInt8]
    private var position = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    var length: Int64 { Int64(bytes.count) }
    func rewind() { position = 0 }

    func read(into buffer: UnsafeMutableRawBufferPointer) -> Int {
        let count = min(buffer.count, bytes.count - position)
        buffer.copyBytes(from: bytes[position..<(position + count)])
        position += count
        return count
    }
}

/// A file as a member. The file must not have changed since its digest was computed.
final class FileSource: ZipWriter.Source {
    private let path: FilePath
    let length: Int64
    private let digest: Digest
    private var file: FileDescriptor?
    private var hash = IncrementalDigest()
    private var count: Int64 = 0

    init(_ path: FilePath, length: Int64, digest: Digest) {
        self.path = path
        self.length = length
        self.digest = digest
    }

    deinit { try? file?.close() }

    func rewind() throws {
        try? file?.close()
        file = try FileDescriptor.open(path, .readOnly, options: [.closeOnExec])
        (hash, count) = (IncrementalDigest(), 0)
    }

    func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
        guard let file else { return 0 }
        let got = try file.read(into: buffer)
        if got > 0 {
            hash.update(UnsafeRawBufferPointer(rebasing: buffer[..<got]))
            count += Int64(got)
            return got
        }
        try? file.close()
        self.file = nil
        guard count == length, hash.finalize() == digest else {
            throw PackageError(.io, "\(path) changed while the package was made", archive: path)
        }
        return 0
    }
}

/// A body of a store as a member.
final class BodySource: ZipWriter.Source {
    private let key: Key
    private let digest: Digest
    private let store: Store
    let length: Int64
    private var body: Body?
    private var position: Int64 = 0

    init(_ key: Key, _ digest: Digest, length: Int64, in store: Store) {
        self.key = key
        self.digest = digest
        self.length = length
        self.store = store
    }

    func rewind() throws {
        // Under its key, if that was not put again since.
        body = try store.peek(key).flatMap { $0.digest == digest ? $0.body : nil } ?? store.body(digest: digest)
        position = 0
        if body == nil {
            throw PackageError(.missingMember, "the body \(digest) was displaced while the package was made")
        }
    }

    func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
        guard let body else { return 0 }
        let end = min(length, position + Int64(buffer.count))
        if position == end {
            self.body = nil
            return 0
        }
        let bytes = try body.bytes(in: position..<end)
        buffer.copyBytes(from: bytes)
        position = end
        return bytes.count
    }
}
