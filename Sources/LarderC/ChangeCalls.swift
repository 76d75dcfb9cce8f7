import CLarderInterface
import Larder
import Locks

/// Documented in `larder/change.h`.
@c @implementation
public func larder_change(
    _ handle: OpaquePointer?, _ keyStart: UnsafeRawPointer?, _ keyLength: Int,
    _ change: UnsafePointer<larder_entry_change>?
) -> larder_status {
    status {
        let store = try store(handle)
        var batch = WriteBatch()
        batch.change(try key(keyStart, keyLength), try EntryChange(change))
        return try store.write(batch)[0].status()
    }
}

/// Documented in `larder/change.h`.
@c @implementation
public func larder_touch(
    _ handle: OpaquePointer?, _ keyStart: UnsafeRawPointer?, _ keyLength: Int, _ microseconds: Int64
) -> larder_status {
    status {
        let lifetime = try lifetime(microseconds, expires: 0)
        return try store(handle).touch(key(keyStart, keyLength), lifetime: lifetime) ? LARDER_OK : LARDER_ABSENT
    }
}

/// Documented in `larder/change.h`.
@c @implementation
public func larder_remove(_ handle: OpaquePointer?, _ keyStart: UnsafeRawPointer?, _ keyLength: Int) -> larder_status {
    status { try store(handle).remove(key(keyStart, keyLength)) ? LARDER_OK : LARDER_ABSENT }
}

/// Documented in `larder/change.h`.
@c @implementation
public func larder_remove_if_unchanged(_ handle: OpaquePointer?, _ expected: OpaquePointer?) -> larder_status {
    status {
        let store = try store(handle)
        var batch = WriteBatch()
        batch.remove(try entry(expected))
        return try store.write(batch)[0].status()
    }
}

/// Documented in `larder/change.h`.
@c @implementation
public func larder_pin_tag(
    _ handle: OpaquePointer?, _ tag: UnsafePointer<CChar>?, _ count: UnsafeMutablePointer<UInt64>?
) -> larder_status {
    status(doing: {
        let pinned = try store(handle).pin(tag: text(tag, "the tag"))
        count?.pointee = UInt64(clamping: pinned)
    })
}

/// Documented in `larder/change.h`.
@c @implementation
public func larder_unpin_tag(
    _ handle: OpaquePointer?, _ tag: UnsafePointer<CChar>?, _ count: UnsafeMutablePointer<UInt64>?
) -> larder_status {
    status(doing: {
        let found = try store(handle).unpin(tag: text(tag, "the tag"))
        count?.pointee = UInt64(clamping: found)
    })
}

// MARK: Batches

/// A batch that C holds.
final class BatchHandle: Handled {
    static let kind: UInt8 = 0x17

    let batch = EngineMutex(WriteBatch())
}

/// Documented in `larder/change.h`.
@c @implementation
public func larder_batch_create(_ batch: UnsafeMutablePointer<OpaquePointer?>?) -> larder_status {
    status(doing: {
        let target = try output(batch, "the place for the batch")
        target.pointee = nil
        target.pointee = try Handles.make(BatchHandle())
    })
}

/// Documented in `larder/change.h`.
@c @implementation
public func larder_batch_put(
    _ handle: OpaquePointer?, _ keyStart: UnsafeRawPointer?, _ keyLength: Int, _ body: UnsafeRawPointer?,
    _ bodyLength: Int, _ options: UnsafePointer<larder_put_options>?, _ ifAbsent: Int32
) -> larder_status {
    status(doing: {
        try Handles.object(handle, BatchHandle.self).batch.withLock { batch in
            try batch.addPut(keyStart, keyLength, body, bodyLength, options, ifAbsent: ifAbsent != 0)
        }
    })
}

/// Documented in `larder/change.h`.
@c @implementation
public func larder_batch_change(
    _ handle: OpaquePointer?, _ keyStart: UnsafeRawPointer?, _ keyLength: Int,
    _ change: UnsafePointer<larder_entry_change>?
) -> larder_status {
    status(doing: {
        let (key, change) = (try key(keyStart, keyLength), try EntryChange(change))
        try Handles.object(handle, BatchHandle.self).batch.withLock { $0.change(key, change) }
    })
}

/// Documented in `larder/change.h`.
@c @implementation
public func larder_batch_remove(
    _ handle: OpaquePointer?, _ keyStart: UnsafeRawPointer?, _ keyLength: Int
) -> larder_status {
    status(doing: {
        let key = try key(keyStart, keyLength)
        try Handles.object(handle, BatchHandle.self).batch.withLock { $0.remove(key) }
    })
}

/// Documented in `larder/change.h`.
@c @implementation
public func larder_batch_write(
    _ handle: OpaquePointer?, _ batchHandle: OpaquePointer?, _ durable: Int32,
    _ results: UnsafeMutablePointer<larder_status>?, _ capacity: Int
) -> larder_status {
    status {
        let store = try store(handle)
        // A copy, so that the lock is not held while the disk is waited for.
        let batch = try Handles.object(batchHandle, BatchHandle.self).batch.withLock { $0 }
        _ = try bytes(results, capacity, "the results")
        if capacity != 0, capacity < batch.count { return LARDER_SHORT }
        let written = try store.write(batch, durability: durable == 0 ? nil : .durable)
        guard let results, capacity != 0 else {
            try written.throwIfFailed()
            return LARDER_OK
        }
        for (index, result) in written.enumerated() { results[index] = LarderC.status { try result.status() } }
        return LARDER_OK
    }
}

/// Documented in `larder/change.h`.
@c @implementation
public func larder_batch_release(_ handle: OpaquePointer?) -> larder_status {
    if handle == nil { return LARDER_OK }
    return status(doing: { _ = try Handles.close(handle, BatchHandle.self) })
}
