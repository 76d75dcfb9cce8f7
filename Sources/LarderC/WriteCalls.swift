import CLarderInterface
import Larder

/// Documented in `larder/write.h`.
@c @implementation
public func larder_put(
    _ handle: OpaquePointer?, _ keyStart: UnsafeRawPointer?, _ keyLength: Int, _ body: UnsafeRawPointer?,
    _ bodyLength: Int, _ options: UnsafePointer<larder_put_options>?, _ digest: UnsafeMutableRawPointer?
) -> larder_status {
    status(doing: {
        let store = try store(handle)
        let key = try key(keyStart, keyLength)
        let body = try bytes(body, bodyLength, "the body")
        let (options, declared) = try PutOptions.read(options)
        let stored = try store.put(body, for: key, options, digest: declared)
        digest?.copyMemory(from: stored.bytes, byteCount: Digest.length)
    })
}

/// Documented in `larder/write.h`.
@c @implementation
public func larder_put_if_absent(
    _ handle: OpaquePointer?, _ keyStart: UnsafeRawPointer?, _ keyLength: Int, _ body: UnsafeRawPointer?,
    _ bodyLength: Int, _ options: UnsafePointer<larder_put_options>?
) -> larder_status {
    status {
        let store = try store(handle)
        var batch = WriteBatch()
        try batch.addPut(keyStart, keyLength, body, bodyLength, options, ifAbsent: true)
        return try store.writeAlone(batch, options)
    }
}

/// Documented in `larder/write.h`.
@c @implementation
public func larder_put_if_unchanged(
    _ handle: OpaquePointer?, _ expected: OpaquePointer?, _ body: UnsafeRawPointer?, _ bodyLength: Int,
    _ options: UnsafePointer<larder_put_options>?
) -> larder_status {
    status {
        let store = try store(handle)
        let entry = try entry(expected)
        let body = try bytes(body, bodyLength, "the body")
        let (putOptions, declared) = try PutOptions.read(options)
        var batch = WriteBatch()
        batch.put(body, replacing: entry, putOptions, digest: declared)
        return try store.writeAlone(batch, options)
    }
}

/// The entry that a body was looked up as.
func entry(_ handle: OpaquePointer?) throws(LarderError) -> Entry {
    guard let entry = try Handles.object(handle, BodyHandle.self).entry else {
        throw invalid("the body was looked up by its digest: it is not one of an entry")
    }
    return entry
}

extension WriteBatch {
    mutating func addPut(
        _ keyStart: UnsafeRawPointer?, _ keyLength: Int, _ body: UnsafeRawPointer?, _ bodyLength: Int,
        _ options: UnsafePointer<larder_put_options>?, ifAbsent: Bool
    ) throws(LarderError) {
        let key = try key(keyStart, keyLength)
        let body = try bytes(body, bodyLength, "the body")
        let (options, declared) = try PutOptions.read(options)
        put(body, for: key, options, digest: declared, unlessPresent: ifAbsent)
    }
}

extension Store {
    /// Writes a batch of one put with the durability of its options.
    fileprivate func writeAlone(
        _ batch: WriteBatch, _ options: UnsafePointer<larder_put_options>?
    ) throws -> larder_status {
        let durability = try PutOptions.read(options).options.durability
        return try write(batch, durability: durability)[0].status()
    }
}

extension WriteResult {
    /// The answer; throws if the operation failed.
    func status() throws(LarderError) -> larder_status {
        switch self {
        case .stored, .done: return LARDER_OK
        case .present: return LARDER_PRESENT
        case .absent: return LARDER_ABSENT
        case .changed: return LARDER_CHANGED
        case .failed(let error): throw error
        }
    }
}

// MARK: Writers

/// A writer that C holds.
final class WriterHandle: Handled {
    static let kind: UInt8 = 0x15

    let writer: BodyWriter

    init(_ writer: BodyWriter) { self.writer = writer }
}

/// Documented in `larder/write.h`.
@c @implementation
public func larder_writer_open(
    _ handle: OpaquePointer?, _ keyStart: UnsafeRawPointer?, _ keyLength: Int, _ length: UInt64,
    _ options: UnsafePointer<larder_put_options>?, _ writer: UnsafeMutablePointer<OpaquePointer?>?
) -> larder_status {
    status(doing: {
        let target = try output(writer, "the place for the writer")
        target.pointee = nil
        let store = try store(handle)
        let key = try key(keyStart, keyLength)
        let (options, declared) = try PutOptions.read(options)
        let length = length == .max ? nil : ByteCount(Int64(clamping: length))
        let writer = try store.writer(for: key, options, length: length, digest: declared)
        target.pointee = try Handles.make(WriterHandle(writer))
    })
}

/// Documented in `larder/write.h`.
@c @implementation
public func larder_writer_write(
    _ handle: OpaquePointer?, _ start: UnsafeRawPointer?, _ length: Int
) -> larder_status {
    status(doing: {
        let writer = try Handles.object(handle, WriterHandle.self).writer
        try writer.write(bytes(start, length, "the bytes"))
    })
}

/// Documented in `larder/write.h`.
@c @implementation
public func larder_writer_commit(_ handle: OpaquePointer?, _ digest: UnsafeMutableRawPointer?) -> larder_status {
    status(doing: {
        let stored = try Handles.close(handle, WriterHandle.self).writer.commit()
        digest?.copyMemory(from: stored.bytes, byteCount: Digest.length)
    })
}

/// Documented in `larder/write.h`.
@c @implementation
public func larder_writer_cancel(_ handle: OpaquePointer?) -> larder_status {
    if handle == nil { return LARDER_OK }
    return status(doing: { try Handles.close(handle, WriterHandle.self).writer.cancel() })
}
