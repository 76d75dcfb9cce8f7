import CLarderInterface
import Larder

/// Documented in `larder/read.h`.
@c @implementation
public func larder_get(
    _ handle: OpaquePointer?, _ keyStart: UnsafeRawPointer?, _ keyLength: Int, _ flags: UInt32,
    _ body: UnsafeMutablePointer<OpaquePointer?>?
) -> larder_status {
    status {
        let body = try output(body, "the place for the body")
        body.pointee = nil
        let store = try store(handle)
        try check(flags, known: [LARDER_GET_EXPIRED])
        let key = try key(keyStart, keyLength)
        guard let entry = try store.get(key, includingExpired: has(flags, LARDER_GET_EXPIRED)) else {
            return LARDER_ABSENT
        }
        body.pointee = try Handles.make(BodyHandle(entry.body, entry))
        return LARDER_OK
    }
}

/// Documented in `larder/read.h`.
@c @implementation
public func larder_get_content(
    _ handle: OpaquePointer?, _ digestStart: UnsafeRawPointer?, _ digestLength: Int,
    _ body: UnsafeMutablePointer<OpaquePointer?>?
) -> larder_status {
    status {
        let target = try output(body, "the place for the body")
        target.pointee = nil
        let digest = try digest(digestStart, digestLength)
        guard let body = try store(handle).body(digest: digest) else { return LARDER_ABSENT }
        target.pointee = try Handles.make(BodyHandle(body, digest))
        return LARDER_OK
    }
}

/// Documented in `larder/read.h`.
@c @implementation
public func larder_contains(
    _ handle: OpaquePointer?, _ keyStart: UnsafeRawPointer?, _ keyLength: Int
) -> larder_status {
    status { try store(handle).contains(key(keyStart, keyLength)) ? LARDER_OK : LARDER_ABSENT }
}

/// Documented in `larder/read.h`.
@c @implementation
public func larder_contains_content(
    _ handle: OpaquePointer?, _ digestStart: UnsafeRawPointer?, _ digestLength: Int
) -> larder_status {
    status { try store(handle).contains(digest: digest(digestStart, digestLength)) ? LARDER_OK : LARDER_ABSENT }
}

/// Documented in `larder/read.h`.
@c @implementation
public func larder_read(
    _ handle: OpaquePointer?, _ keyStart: UnsafeRawPointer?, _ keyLength: Int, _ flags: UInt32,
    _ body: UnsafeMutablePointer<larder_buffer>?, _ metadata: UnsafeMutablePointer<larder_buffer>?
) -> larder_status {
    status {
        let body = try output(body, "the buffer of the body")
        try check(body.pointee)
        if let metadata { try check(metadata.pointee) }
        let store = try store(handle)
        try check(flags, known: [LARDER_GET_EXPIRED])
        let key = try key(keyStart, keyLength)
        let includingExpired = has(flags, LARDER_GET_EXPIRED)
        var fits = true
        // In place, without an array in between.
        let isDone = try store.visit(key, includingExpired: includingExpired) { found, bytes in
            let fitsBody = copy(bytes, to: body)
            fits = (metadata.map { copy(found, to: $0) } ?? true) && fitsBody
        }
        if isDone { return fits ? LARDER_OK : LARDER_SHORT }
        guard let entry = try store.get(key, includingExpired: includingExpired) else { return LARDER_ABSENT }
        if let metadata { fits = entry.metadata.withUnsafeBytes { copy($0, to: metadata) } }
        body.pointee.length = Int(entry.body.length.bytes)
        guard body.pointee.length <= body.pointee.capacity, fits else { return LARDER_SHORT }
        _ = try entry.body.read(
            into: UnsafeMutableRawBufferPointer(start: body.pointee.data, count: body.pointee.length), at: 0)
        return LARDER_OK
    }
}

private func check(_ buffer: larder_buffer) throws(LarderError) {
    _ = try bytes(buffer.data, buffer.capacity, "the data of a buffer")
}

/// Copies as much as there is if it fits. Returns whether it did.
private func copy(_ bytes: UnsafeRawBufferPointer, to buffer: UnsafeMutablePointer<larder_buffer>) -> Bool {
    buffer.pointee.length = bytes.count
    guard bytes.count <= buffer.pointee.capacity else { return false }
    if let start = bytes.baseAddress, bytes.count > 0 {
        buffer.pointee.data.copyMemory(from: start, byteCount: bytes.count)
    }
    return true
}
