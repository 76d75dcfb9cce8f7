import CLarderInterface
import Larder

/// Documented in `larder/list.h`.
@c @implementation
public func larder_describe(
    _ handle: OpaquePointer?, _ keyStart: UnsafeRawPointer?, _ keyLength: Int, _ callback: larder_item_callback?,
    _ context: UnsafeMutableRawPointer?
) -> larder_status {
    status {
        guard let callback else { throw invalid("the callback is NULL") }
        guard let found = try store(handle).attributes(of: key(keyStart, keyLength)) else { return LARDER_ABSENT }
        _ = found.withItem { callback(context, $0) }
        return LARDER_OK
    }
}

/// Documented in `larder/list.h`.
@c @implementation
public func larder_body_describe(
    _ handle: OpaquePointer?, _ callback: larder_item_callback?, _ context: UnsafeMutableRawPointer?
) -> larder_status {
    status {
        guard let callback else { throw invalid("the callback is NULL") }
        guard let entry = try Handles.object(handle, BodyHandle.self).entry else { return LARDER_ABSENT }
        _ = entry.attributes.withItem { callback(context, $0) }
        return LARDER_OK
    }
}

/// Documented in `larder/list.h`.
@c @implementation
public func larder_list(
    _ handle: OpaquePointer?, _ selection: UnsafePointer<larder_selection>?, _ callback: larder_item_callback?,
    _ context: UnsafeMutableRawPointer?
) -> larder_status {
    status(doing: {
        guard let callback else { throw invalid("the callback is NULL") }
        try store(handle).forEach(Selection(selection)) { attributes in
            if attributes.withItem({ callback(context, $0) }) != 0 { throw Stopped() }
        }
    })
}

/// Documented in `larder/list.h`.
@c @implementation
public func larder_remove_selected(
    _ handle: OpaquePointer?, _ selection: UnsafePointer<larder_selection>?, _ count: UnsafeMutablePointer<UInt64>?
) -> larder_status {
    status(doing: {
        if selection == nil { throw invalid("the selection is NULL: larder_clear removes every entry") }
        let removed = try store(handle).remove(Selection(selection))
        count?.pointee = UInt64(clamping: removed)
    })
}

extension Selection {
    fileprivate init(_ pointer: UnsafePointer<larder_selection>?) throws(LarderError) {
        self = .all
        guard let pointer else { return }
        let given = try structure(pointer, default: larder_selection(), "larder_selection")
        if given.reserved != 0 { throw invalid("`reserved` of larder_selection is not 0") }
        try check(
            given.flags,
            known: [
                LARDER_SELECT_EXPIRED, LARDER_SELECT_PINNED, LARDER_SELECT_UNPINNED, LARDER_SELECT_OTHER_VERSIONS,
            ])
        var parts: [Selection] = []
        let prefix = try bytes(given.prefix, given.prefix_length, "the prefix")
        if prefix.count > Key.maximumLength {
            throw LarderError(.tooLarge, "the prefix has \(prefix.count) bytes; a key has at most \(Key.maximumLength)")
        }
        if !prefix.isEmpty { parts.append(.prefix(Key(bytes: prefix))) }
        if let tag = given.tag { parts.append(.tag(try text(tag, "the tag"))) }
        if let host = given.host { parts.append(.host(try text(host, "the host"))) }
        if given.digest != nil || given.digest_length != 0 {
            parts.append(.content(try digest(given.digest, given.digest_length)))
        }
        if given.at_least != 0 { parts.append(.atLeast(ByteCount(Int64(clamping: given.at_least)))) }
        if given.stored_before != 0 { parts.append(.storedBefore(Timestamp(microseconds: given.stored_before))) }
        if given.unused_since != 0 { parts.append(.unusedSince(Timestamp(microseconds: given.unused_since))) }
        if has(given.flags, LARDER_SELECT_EXPIRED) { parts.append(.expired) }
        if has(given.flags, LARDER_SELECT_PINNED) { parts.append(.pinned) }
        if has(given.flags, LARDER_SELECT_UNPINNED) { parts.append(!.pinned) }
        if has(given.flags, LARDER_SELECT_OTHER_VERSIONS) { parts.append(.otherVersions) }
        if let first = parts.first { self = parts.dropFirst().reduce(first) { $0 && $1 } }
    }
}

extension Attributes {
    /// Runs `body` on the attributes as C sees them, which are gone after it.
    fileprivate func withItem<R>(_ body: (UnsafePointer<larder_item>) -> R) -> R {
        // One block for all tags, and where each starts in it.
        var text: [CChar] = []
        var starts: [Int] = []
        for tag in tags {
            starts.append(text.count)
            text += tag.utf8.map { CChar(bitPattern: $0) } + [0]
        }
        return text.withUnsafeBufferPointer { text in
            let pointers: [UnsafePointer<CChar>?] = starts.map { text.baseAddress?.advanced(by: $0) }
            return pointers.withUnsafeBufferPointer { pointers in
                key.bytes.withUnsafeBytes { key in
                    metadata.withUnsafeBytes { metadata in
                        var item = summary
                        (item.key, item.key_length) = (key.baseAddress, key.count)
                        (item.metadata, item.metadata_length) = (metadata.baseAddress, metadata.count)
                        (item.tags, item.tag_count) = (pointers.baseAddress, pointers.count)
                        return withUnsafePointer(to: item, body)
                    }
                }
            }
        }
    }

    /// Everything but what it points to.
    private var summary: larder_item {
        var item = larder_item()
        item.size = MemoryLayout<larder_item>.size
        if isPinned { item.flags |= UInt32(LARDER_ITEM_PINNED) }
        if isInline { item.flags |= UInt32(LARDER_ITEM_INLINE) }
        if storagePolicy == .session { item.flags |= UInt32(LARDER_ITEM_SESSION) }
        if storagePolicy == .memoryOnly { item.flags |= UInt32(LARDER_ITEM_MEMORY_ONLY) }
        withUnsafeMutableBytes(of: &item.digest) { $0.copyBytes(from: digest.bytes) }
        item.length = UInt64(length.bytes)
        item.references = UInt64(clamping: references ?? 0)
        item.hits = UInt64(clamping: hitCount)
        item.created = created.microseconds
        item.stored = stored.microseconds
        item.accessed = lastAccess.microseconds
        item.expires = (expires ?? .distantFuture).microseconds
        return item
    }
}
