import CLarderInterface
import Larder

private func body(_ handle: OpaquePointer?) throws(LarderError) -> BodyHandle { try Handles.object(handle) }

/// Documented in `larder/read.h`.
@c @implementation
public func larder_body_length(_ handle: OpaquePointer?, _ length: UnsafeMutablePointer<UInt64>?) -> larder_status {
    status(doing: { try output(length, "the place for the length").pointee = UInt64(body(handle).body.length.bytes) })
}

/// Documented in `larder/read.h`.
@c @implementation
public func larder_body_digest(
    _ handle: OpaquePointer?, _ target: UnsafeMutableRawPointer?, _ capacity: Int
) -> larder_status {
    status {
        let body = try body(handle)
        _ = try bytes(target, capacity, "the place for the digest")
        guard let target, capacity >= Digest.length else { return LARDER_SHORT }
        target.copyMemory(from: body.digest.bytes, byteCount: Digest.length)
        return LARDER_OK
    }
}

/// Documented in `larder/read.h`.
@c @implementation
public func larder_body_bytes(
    _ handle: OpaquePointer?, _ start: UnsafeMutablePointer<UnsafeRawPointer?>?, _ length: UnsafeMutablePointer<Int>?
) -> larder_status {
    status(doing: {
        let (start, length) = (
            try output(start, "the place for the bytes"), try output(length, "the place for the length")
        )
        let bytes = try body(handle).bytes()
        start.pointee = bytes.baseAddress
        length.pointee = bytes.count
    })
}

/// Documented in `larder/read.h`.
@c @implementation
public func larder_body_metadata(
    _ handle: OpaquePointer?, _ start: UnsafeMutablePointer<UnsafeRawPointer?>?, _ length: UnsafeMutablePointer<Int>?
) -> larder_status {
    status(doing: {
        let start = try output(start, "the place for the metadata")
        let length = try output(length, "the place for the length")
        let metadata = try body(handle).metadata()
        start.pointee = metadata.baseAddress
        length.pointee = metadata.count
    })
}

/// Documented in `larder/read.h`.
@c @implementation
public func larder_body_read(
    _ handle: OpaquePointer?, _ offset: UInt64, _ buffer: UnsafeMutableRawPointer?, _ capacity: Int,
    _ count: UnsafeMutablePointer<Int>?
) -> larder_status {
    status(doing: {
        let count = try output(count, "the place for the count")
        _ = try bytes(buffer, capacity, "the buffer")
        count.pointee = try body(handle).body.read(
            into: UnsafeMutableRawBufferPointer(start: buffer, count: capacity), at: Int64(clamping: offset))
    })
}

/// Documented in `larder/read.h`.
@c @implementation
public func larder_body_descriptor(
    _ handle: OpaquePointer?, _ descriptor: UnsafeMutablePointer<Int32>?, _ offset: UnsafeMutablePointer<UInt64>?,
    _ length: UnsafeMutablePointer<UInt64>?
) -> larder_status {
    status(doing: {
        let descriptor = try output(descriptor, "the place for the descriptor")
        let offset = try output(offset, "the place for the offset")
        let length = try output(length, "the place for the length")
        let file = try body(handle).file()
        descriptor.pointee = file.descriptor
        offset.pointee = UInt64(file.range.lowerBound)
        length.pointee = UInt64(file.range.count)
    })
}

/// Documented in `larder/read.h`.
@c @implementation
public func larder_body_release(_ handle: OpaquePointer?) -> larder_status {
    if handle == nil { return LARDER_OK }
    return status(doing: { _ = try Handles.close(handle, BodyHandle.self) })
}
