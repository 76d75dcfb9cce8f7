import CLarderInterface
import Larder

/// A store that C has open.
final class StoreHandle: Handled {
    static let kind: UInt8 = 0x11

    let store: Store

    init(_ store: Store) { self.store = store }
}

/// The store of a handle.
func store(_ handle: OpaquePointer?) throws(LarderError) -> Store { try Handles.object(handle, StoreHandle.self).store }

/// Documented in `larder/store.h`.
@c @implementation
public func larder_open(
    _ path: UnsafePointer<CChar>?, _ options: UnsafePointer<larder_options>?,
    _ handle: UnsafeMutablePointer<OpaquePointer?>?
) -> larder_status {
    status(doing: {
        let handle = try output(handle, "the place for the store")
        handle.pointee = nil
        try ForkedHandles.watch()
        let path = try text(path, "the path")
        if path.isEmpty { throw invalid("the path is empty") }
        let store = try Store(at: path, Configuration(options))
        handle.pointee = try Handles.make(StoreHandle(store))
    })
}

/// Documented in `larder/store.h`.
@c @implementation
public func larder_change_key(
    _ path: UnsafePointer<CChar>?, _ old: UnsafePointer<larder_key>?, _ new: UnsafePointer<larder_key>?
) -> larder_status {
    status(doing: {
        try Store.changeKey(at: text(path, "the path"), from: EncryptionKey(old), to: EncryptionKey(new))
    })
}

/// Documented in `larder/store.h`.
@c @implementation
public func larder_close(_ handle: OpaquePointer?) -> larder_status {
    if handle == nil { return LARDER_OK }
    return status(doing: { try Handles.close(handle, StoreHandle.self).store.close() })
}

/// Documented in `larder/store.h`.
@c @implementation
public func larder_flush(_ handle: OpaquePointer?, _ durable: Int32) -> larder_status {
    status(doing: { try store(handle).flush(durable == 0 ? .relaxed : .durable) })
}

/// Documented in `larder/store.h`.
@c @implementation
public func larder_clear(_ handle: OpaquePointer?, _ count: UnsafeMutablePointer<UInt64>?) -> larder_status {
    status(doing: {
        let removed = try store(handle).clear()
        count?.pointee = UInt64(removed)
    })
}

/// Documented in `larder/store.h`.
@c @implementation
public func larder_get_budget(_ handle: OpaquePointer?, _ budget: UnsafeMutablePointer<larder_budget>?) -> larder_status
{
    status(doing: { try fill(output(budget, "the budget"), with: store(handle).budget().inC, "larder_budget") })
}

/// Documented in `larder/store.h`.
@c @implementation
public func larder_set_budget(_ handle: OpaquePointer?, _ budget: UnsafePointer<larder_budget>?) -> larder_status {
    status(doing: { try store(handle).setBudget(Budget(budget)) })
}

/// Documented in `larder/store.h`.
@c @implementation
public func larder_get_statistics(
    _ handle: OpaquePointer?, _ statistics: UnsafeMutablePointer<larder_statistics>?
) -> larder_status {
    status(doing: {
        let target = try output(statistics, "the place for the statistics")
        try fill(target, with: store(handle).statistics().inC, "larder_statistics")
    })
}

extension Statistics {
    fileprivate var inC: larder_statistics {
        larder_statistics(
            size: 0, entries: UInt64(clamping: entryCount), blobs: UInt64(clamping: blobCount),
            logical_bytes: UInt64(logicalBytes.bytes), stored_bytes: UInt64(storedBytes.bytes),
            allocated_bytes: UInt64(allocatedBytes.bytes), index_bytes: UInt64(indexBytes.bytes),
            budget_bytes: budget.bytes.inC, hits: UInt64(clamping: counters.hits),
            misses: UInt64(clamping: counters.misses), bytes_read: UInt64(counters.bytesRead.bytes),
            puts: UInt64(clamping: counters.puts), bytes_written: UInt64(counters.bytesWritten.bytes),
            removed: UInt64(clamping: counters.removed), displaced: UInt64(clamping: counters.displaced.total),
            memory_entries: UInt64(clamping: memoryEntryCount), memory_bytes: UInt64(memoryBytes.bytes),
            counted_since: counters.since.microseconds, held_bodies: UInt64(clamping: memoryTier.count),
            held_bytes: UInt64(memoryTier.bytes.bytes), held_hits: UInt64(clamping: memoryTier.hits),
            held_misses: UInt64(clamping: memoryTier.misses), compression_gain: UInt64(compressionGain.bytes))
    }
}

// MARK: Keeping it in order

/// Documented in `larder/store.h`.
@c @implementation
public func larder_collect(
    _ handle: OpaquePointer?, _ flags: UInt32, _ progress: larder_collect_progress?,
    _ context: UnsafeMutableRawPointer?, _ result: UnsafeMutablePointer<larder_collection>?
) -> larder_status {
    status(doing: {
        try check(flags, known: [LARDER_COLLECT_DRY_RUN, LARDER_COLLECT_COMPACT])
        // Whether the place for the result is one is known before anything is done.
        if let result { try fill(result, with: larder_collection(), "larder_collection") }
        let report = try store(handle).collect(
            dryRun: has(flags, LARDER_COLLECT_DRY_RUN), compact: has(flags, LARDER_COLLECT_COMPACT)
        ) { step, report in
            guard let progress else { return }
            let answer = withUnsafePointer(to: report.inC) { soFar in
                step.rawValue.withCString { progress(context, $0, soFar) }
            }
            if answer != 0 { throw Stopped() }
        }
        if let result { try fill(result, with: report.inC, "larder_collection") }
    })
}

extension CollectionReport {
    fileprivate var inC: larder_collection {
        larder_collection(
            size: MemoryLayout<larder_collection>.size, expired: UInt64(clamping: expiredEntries),
            displaced: UInt64(clamping: displacedEntries), other_versions: UInt64(clamping: otherVersionEntries),
            orphans: UInt64(clamping: orphanBlobs), stale_files: UInt64(clamping: staleFiles),
            dangling: UInt64(clamping: danglingEntries), allocated_before: UInt64(allocatedBefore.bytes),
            allocated_after: UInt64(allocatedAfter.bytes))
    }
}

/// Documented in `larder/store.h`.
@c @implementation
public func larder_check(
    _ handle: OpaquePointer?, _ flags: UInt32, _ report: larder_check_report?, _ context: UnsafeMutableRawPointer?,
    _ violations: UnsafeMutablePointer<UInt64>?, _ repaired: UnsafeMutablePointer<UInt64>?
) -> larder_status {
    status(doing: {
        try check(flags, known: [LARDER_CHECK_REPAIR, LARDER_CHECK_INDEX_ONLY])
        let found = try store(handle).check(
            repair: has(flags, LARDER_CHECK_REPAIR), readingBodies: !has(flags, LARDER_CHECK_INDEX_ONLY))
        violations?.pointee = UInt64(clamping: found.violationCount)
        repaired?.pointee = UInt64(clamping: found.repairedCount)
        guard let report else { return }
        for violation in found.violations {
            let text = "\(violation.invariant.rawValue): \(violation.message)"
            if text.withCString({ report(context, $0, violation.isRepaired ? 1 : 0) }) != 0 { throw Stopped() }
        }
    })
}
