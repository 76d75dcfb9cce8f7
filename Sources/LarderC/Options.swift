import CLarderInterface
import Larder

extension Configuration {
    init(_ pointer: UnsafePointer<larder_options>?) throws(LarderError) {
        self.init()
        // Standard error belongs to the program.
        logger.logLevel = .warning
        guard let pointer else { return }
        let options = try structure(pointer, default: larder_options(), "larder_options")
        if options.reserved != 0 { throw invalid("`reserved` of larder_options is not 0") }
        try use(options.flags)
        if options.budget_bytes | options.budget_entries | options.largest_entry | options.free_disk_floor != 0 {
            budget = Budget(
                bytes: limit(options.budget_bytes), entries: entryLimit(options.budget_entries),
                largestEntry: limit(options.largest_entry), freeDiskFloor: count(options.free_disk_floor))
        }
        if options.default_lifetime < 0 || options.maximum_lifetime < 0 || options.commit_delay < 0 {
            throw invalid("a lifetime or delay of larder_options is less than 0")
        }
        if let lifetime = try lifetime(options.default_lifetime, expires: 0) { defaultLifetime = lifetime }
        if options.maximum_lifetime != 0 { maximumLifetime = .microseconds(options.maximum_lifetime) }
        if options.expired_retention != 0 { expiredRetention = .microseconds(max(0, options.expired_retention)) }
        if options.commit_delay != 0 { commitDelay = .microseconds(options.commit_delay) }
        switch options.inline_threshold {
        case 0: break
        case .max: inlineThreshold = .zero
        default: inlineThreshold = count(options.inline_threshold)
        }
        switch options.embedding_threshold {
        case 0: break
        case .max: embeddingThreshold = .zero
        default: embeddingThreshold = count(options.embedding_threshold)
        }
        if options.memory_limit != 0 { memoryLimit = count(options.memory_limit) }
        if options.index_map_size != 0 { indexMapSize = count(options.index_map_size) }
        if let version = options.version { self.version = try text(version, "the version") }
        if let key = options.key { encryption = try EncryptionKey(key) }
    }

    private mutating func use(_ flags: UInt32) throws(LarderError) {
        try check(
            flags,
            known: [
                LARDER_OPEN_READ_ONLY, LARDER_OPEN_DURABLE, LARDER_OPEN_OTHER_OWNER, LARDER_OPEN_CHECK_INDEX,
                LARDER_OPEN_VERIFY_ALWAYS, LARDER_OPEN_VERIFY_NEVER, LARDER_OPEN_KEEP_BODIES,
                LARDER_OPEN_COMPRESS,
            ])
        isReadOnly = has(flags, LARDER_OPEN_READ_ONLY)
        if has(flags, LARDER_OPEN_DURABLE) { durability = .durable }
        allowsOtherOwner = has(flags, LARDER_OPEN_OTHER_OWNER)
        if has(flags, LARDER_OPEN_CHECK_INDEX) { indexCheck = .always }
        if has(flags, LARDER_OPEN_COMPRESS) { compression = .trial }
        keepsBodiesInMemory = has(flags, LARDER_OPEN_KEEP_BODIES)
        switch (has(flags, LARDER_OPEN_VERIFY_ALWAYS), has(flags, LARDER_OPEN_VERIFY_NEVER)) {
        case (true, true): throw invalid("LARDER_OPEN_VERIFY_ALWAYS and LARDER_OPEN_VERIFY_NEVER are both set")
        case (true, false): verification = .always
        case (false, true): verification = .never
        case (false, false): break
        }
    }
}

extension EncryptionKey {
    init(_ pointer: UnsafePointer<larder_key>?) throws(LarderError) {
        guard let pointer else { throw invalid("the key is NULL") }
        let key = try structure(pointer, default: larder_key(), "larder_key")
        if let passphrase = key.passphrase {
            if key.bytes != nil || key.length != 0 {
                throw invalid("`bytes` and `passphrase` of larder_key are both set")
            }
            self = try EncryptionKey(passphrase: text(passphrase, "the passphrase"))
        } else {
            self = try EncryptionKey(bytes: bytes(key.bytes, key.length, "the key"))
        }
    }
}

extension Budget {
    init(_ pointer: UnsafePointer<larder_budget>?) throws(LarderError) {
        guard let pointer else { throw invalid("the budget is NULL") }
        let budget = try structure(pointer, default: larder_budget(), "larder_budget")
        self.init(
            bytes: limit(budget.bytes), entries: entryLimit(budget.entries), largestEntry: limit(budget.largest_entry),
            freeDiskFloor: count(budget.free_disk_floor))
    }

    var inC: larder_budget {
        larder_budget(
            size: 0, bytes: bytes.inC, entries: entries == .max ? .max : UInt64(entries),
            largest_entry: largestEntry.inC, free_disk_floor: UInt64(freeDiskFloor.bytes))
    }
}

extension ByteCount {
    /// As a limit.
    var inC: UInt64 { self == .unlimited ? .max : UInt64(bytes) }
}

private func count(_ number: UInt64) -> ByteCount { ByteCount(Int64(clamping: number)) }

/// 0 means no limit.
private func limit(_ number: UInt64) -> ByteCount { number == 0 ? .unlimited : count(number) }

private func entryLimit(_ number: UInt64) -> Int { number == 0 ? .max : Int(clamping: number) }

extension PutOptions {
    /// The options, and the digest that the body is declared to have.
    static func read(
        _ pointer: UnsafePointer<larder_put_options>?
    ) throws(LarderError) -> (options: PutOptions, digest: Digest?) {
        var result = PutOptions()
        guard let pointer else { return (result, nil) }
        let given = try structure(pointer, default: larder_put_options(), "larder_put_options")
        if given.reserved != 0 { throw invalid("`reserved` of larder_put_options is not 0") }
        try result.use(given.flags)
        if let lifetime = try LarderC.lifetime(given.lifetime, expires: given.expires) { result.lifetime = lifetime }
        result.metadata = try LarderC.metadata(given.metadata, given.metadata_length)
        result.tags = try LarderC.tags(given.tags, given.tag_count)
        guard given.digest != nil || given.digest_length != 0 else { return (result, nil) }
        return (result, try LarderC.digest(given.digest, given.digest_length))
    }

    private mutating func use(_ flags: UInt32) throws(LarderError) {
        try check(
            flags,
            known: [
                LARDER_PUT_DURABLE, LARDER_PUT_RELAXED, LARDER_PUT_PINNED, LARDER_PUT_SESSION, LARDER_PUT_MEMORY_ONLY,
                LARDER_PUT_COMPRESS, LARDER_PUT_PLAIN,
            ])
        if has(flags, LARDER_PUT_DURABLE), has(flags, LARDER_PUT_RELAXED) {
            throw invalid("LARDER_PUT_DURABLE and LARDER_PUT_RELAXED are both set")
        }
        if has(flags, LARDER_PUT_SESSION), has(flags, LARDER_PUT_MEMORY_ONLY) {
            throw invalid("LARDER_PUT_SESSION and LARDER_PUT_MEMORY_ONLY are both set")
        }
        switch (has(flags, LARDER_PUT_COMPRESS), has(flags, LARDER_PUT_PLAIN)) {
        case (true, true): throw invalid("LARDER_PUT_COMPRESS and LARDER_PUT_PLAIN are both set")
        case (true, false): compression = .trial
        case (false, true): compression = .off
        case (false, false): break
        }
        if has(flags, LARDER_PUT_DURABLE) { durability = .durable }
        if has(flags, LARDER_PUT_RELAXED) { durability = .relaxed }
        isPinned = has(flags, LARDER_PUT_PINNED)
        if has(flags, LARDER_PUT_SESSION) { storagePolicy = .session }
        if has(flags, LARDER_PUT_MEMORY_ONLY) { storagePolicy = .memoryOnly }
    }
}

/// Metadata, not copied where it is longer than allowed.
func metadata(_ start: UnsafeRawPointer?, _ length: Int) throws(LarderError) -> [UInt8] {
    let bytes = try bytes(start, length, "the metadata")
    if length > 1 << 20 {
        throw LarderError(
            .tooLarge, "the metadata has \(length) bytes; the most is 1 MiB: store it as a body of its own")
    }
    return Array(bytes)
}

extension EntryChange {
    init(_ pointer: UnsafePointer<larder_entry_change>?) throws(LarderError) {
        guard let pointer else { throw invalid("the change is NULL") }
        let given = try structure(pointer, default: larder_entry_change(), "larder_entry_change")
        if given.reserved != 0 { throw invalid("`reserved` of larder_entry_change is not 0") }
        try check(
            given.fields,
            known: [
                LARDER_CHANGE_LIFETIME, LARDER_CHANGE_METADATA, LARDER_CHANGE_TAGS, LARDER_CHANGE_PIN,
                LARDER_CHANGE_UNPIN, LARDER_CHANGE_ACCESS,
            ])
        self.init()
        if has(given.fields, LARDER_CHANGE_LIFETIME) {
            lifetime = try LarderC.lifetime(given.lifetime, expires: given.expires) ?? .standard
        }
        if has(given.fields, LARDER_CHANGE_METADATA) {
            metadata = try LarderC.metadata(given.metadata, given.metadata_length)
        }
        if has(given.fields, LARDER_CHANGE_TAGS) { tags = try LarderC.tags(given.tags, given.tag_count) }
        switch (has(given.fields, LARDER_CHANGE_PIN), has(given.fields, LARDER_CHANGE_UNPIN)) {
        case (true, true): throw invalid("LARDER_CHANGE_PIN and LARDER_CHANGE_UNPIN are both set")
        case (true, false): isPinned = true
        case (false, true): isPinned = false
        case (false, false): break
        }
        isAccess = has(given.fields, LARDER_CHANGE_ACCESS)
    }
}
