/// Bodies become puts: checked, hashed, and written to `staging/` where they are too long for the index.
extension Store {
    /// Where the digest of a body comes from.
    enum DigestSource {
        /// From its bytes; an error if it is not the one that was declared.
        case computed(declared: Digest?)
        case known(Digest)
    }

    /// The longest body that is stored inline now. While a snapshot is held, only a body that fits a page is: longer
    /// ones need runs of free pages, which the snapshot keeps, and a file gives its room back when it is removed.
    func inlineLimit(_ budget: Budget) -> Int64 {
        let limit = configuration.inlineLimit(budget)
        guard engine.writing?.snapshots.mayBeHeld ?? false else { return limit }
        let environment = engine.index.environment
        let room = environment.pageSize - 16
        // What sealing adds, for a body that fills the page.
        let more = environment.valueLength(engine.index.blobs, key: 8, value: room) - room
        return min(limit, Int64(room - BlobRecord.inlineLength - more))
    }

    // MARK: Bytes

    /// A put of an array, which is kept until the commit where it is short.
    /// - Parameter limit: the longest body that is stored inline. Nil: `inlineLimit`.
    func makePut(
        of body: [UInt8], _ key: Key, _ options: PutOptions, _ source: DigestSource, inlineLimit limit: Int64? = nil
    ) throws -> PendingPut {
        let budget = try engine.budget()
        let writing = try writing()
        try options.validate(key: key)
        try Store.checkSize(Int64(body.count), key, budget)
        let digest =
            switch source {
            case .known(let digest): BodyDigest(digest)
            case .computed(let declared):
                try DigestWorker.shared.digest(of: body).requiring(declared, of: key)
            }
        guard options.storagePolicy != .memoryOnly, body.count > limit ?? inlineLimit(budget) else {
            return makePut(key, digest, UInt64(body.count), .inline(body), options)
        }
        let file = try body.withUnsafeBytes { try stage($0, key, options, writing) { digest.value } }
        return makePut(key, digest, UInt64(body.count), .staged(file), options)
    }

    /// A put of bytes that are the caller's: copied only if they stay in memory until the commit.
    func makePut(
        of body: UnsafeRawBufferPointer, _ key: Key, _ options: PutOptions, _ source: DigestSource,
        inlineLimit limit: Int64? = nil
    ) throws -> PendingPut {
        let budget = try engine.budget()
        let limit = limit ?? inlineLimit(budget)
        guard options.storagePolicy != .memoryOnly, body.count > limit else {
            return try makePut(of: Array(body), key, options, source, inlineLimit: limit)
        }
        let writing = try writing()
        try options.validate(key: key)
        try Store.checkSize(Int64(body.count), key, budget)
        let digest =
            switch source {
            case .known(let digest): BodyDigest(digest)
            case .computed(let declared): try BodyDigest(Digest.of(body)).requiring(declared, of: key)
            }
        let file = try stage(body, key, options, writing) { digest.value }
        return makePut(key, digest, UInt64(body.count), .staged(file), options)
    }

    /// A file in `staging/` with a body, compressed if that is asked for and saves enough.
    private func stage(
        _ body: UnsafeRawBufferPointer, _ key: Key, _ options: PutOptions, _ writing: Engine.Writing,
        _ digest: () -> Digest
    ) throws -> StagedFile {
        let member = compression(options).tries(body.count) ? GzipWriter.compressed(body) : nil
        return try withoutActuallyEscaping(digest) { digest in
            guard let member else {
                let form = Stager.Form(bytes: body, digest: digest)
                return try writing.stager.stage(form, for: key, isDurable: isDurable(options))
            }
            return try member.withUnsafeBytes {
                let form = Stager.Form(bytes: $0, encoding: .gzip, digest: digest)
                return try writing.stager.stage(form, for: key, isDurable: isDurable(options))
            }
        }
    }

    /// Whether a put compresses, which takes longer than a thread that must not wait has.
    func compresses(_ length: Int64, _ options: PutOptions) -> Bool {
        (options.compression ?? configuration.compression).tries(Int(clamping: length))
    }

    /// Whether a body is to be compressed: not in a store that cannot be marked as one with compressed bodies.
    func compression(_ options: PutOptions) -> Compression {
        let compression = options.compression ?? configuration.compression
        return compression == .off || (try? engine.writing?.allowCompression()) == nil ? .off : compression
    }

    /// A put of any of the forms a body is passed in.
    func makePut(
        of body: some Collection<UInt8>, _ key: Key, _ options: PutOptions, _ source: DigestSource,
        inlineLimit limit: Int64? = nil
    ) throws -> PendingPut {
        if let array = body as? [UInt8] { return try makePut(of: array, key, options, source, inlineLimit: limit) }
        let put = try body.withContiguousStorageIfAvailable {
            try makePut(of: UnsafeRawBufferPointer($0), key, options, source, inlineLimit: limit)
        }
        if let put { return put }
        return try makePut(of: Array(body), key, options, source, inlineLimit: limit)
    }

    func makePut(
        of body: borrowing RawSpan, _ key: Key, _ options: PutOptions, _ source: DigestSource
    ) throws -> PendingPut {
        try body.withUnsafeBytes { try makePut(of: $0, key, options, source) }
    }

    // MARK: Puts

    func makePut(
        _ key: Key, _ digest: Digest, _ length: UInt64, _ body: PendingPut.Body, _ options: PutOptions,
        progress: EntryRecord.Progress? = nil, completesPartial: Bool = false
    ) -> PendingPut {
        makePut(
            key, BodyDigest(digest), length, body, options, progress: progress, completesPartial: completesPartial)
    }

    private func makePut(
        _ key: Key, _ digest: BodyDigest, _ length: UInt64, _ body: PendingPut.Body, _ options: PutOptions,
        progress: EntryRecord.Progress? = nil, completesPartial: Bool = false
    ) -> PendingPut {
        let now = engine.clock.advance()
        var compressed: CompressedForm?
        if case .inline(let bytes) = body, options.storagePolicy != .memoryOnly {
            compressed = CompressedForm.of(bytes, compression(options))
        }
        return PendingPut(
            key: key, digest: digest, length: length, body: body, options: options, stored: now,
            expires: configuration.expiry(options.lifetime, at: now), version: version ?? 0,
            session: engine.writing?.lock.instance ?? 0, isDurable: isDurable(options), uptime: engine.uptime.uptime(),
            owner: handle, progress: progress, completesPartial: completesPartial,
            isEmbeddable: !options.isShared && configuration.embeds(length), compressed: compressed)
    }

    // MARK: Checks

    func isDurable(_ options: PutOptions) -> Bool {
        options.storagePolicy != .memoryOnly && isDurable(options.durability)
    }

    func isDurable(_ durability: Durability?) -> Bool { (durability ?? configuration.durability) == .durable }

    /// Longer than any file system's files; keeps sums of lengths from overflowing.
    static let maximumLength: Int64 = 1 << 53

    static func checkSize(_ bytes: Int64, _ key: Key, _ budget: Budget) throws(LarderError) {
        if bytes > maximumLength {
            throw LarderError(
                .tooLarge,
                "the body of \(key) has \(ByteCount(bytes).exactly); no body can have more than \(ByteCount(maximumLength))",
                key: key)
        }
        // Not made for a body that is accepted.
        func text(_ rest: String) -> String { "the body of \(key) has \(ByteCount(bytes).exactly) or more\(rest)" }
        if bytes > budget.largestEntry.bytes {
            throw LarderError(
                .tooLarge, text("; the largest entry allowed is \(budget.largestEntry.exactly)"),
                remedy: .raiseLargestEntry, key: key)
        }
        if bytes > budget.usableBytes {
            throw LarderError(
                .tooLarge, text(" and does not fit the byte budget of \(budget.bytes.exactly)"),
                remedy: .raiseBudget, key: key)
        }
        let half = budget.effectiveLargestEntry
        if bytes > half.bytes {
            throw LarderError(
                .tooLarge,
                text("; the largest entry allowed is \(half.exactly), half of what the byte budget leaves for entries"),
                remedy: .raiseLargestEntry, key: key)
        }
    }

    static func mismatch(_ key: Key, _ declared: Digest, _ actual: Digest) -> LarderError {
        LarderError(
            .digestMismatch,
            "the body of \(key) has the SHA-256 \(actual), not \(declared) as declared: fetch it again; nothing was stored",
            key: key)
    }
}

extension Configuration {
    /// When an entry put at `now` stops being fresh, the ceiling applied.
    func expiry(_ lifetime: Lifetime, at now: Timestamp) -> Timestamp {
        let asked: Timestamp
        switch lifetime {
        case .standard:
            // A default of `standard` would refer to itself; it means no default.
            asked = defaultLifetime == .standard ? .distantFuture : expiryWithoutCeiling(defaultLifetime, at: now)
        default:
            asked = expiryWithoutCeiling(lifetime, at: now)
        }
        guard let maximumLifetime else { return asked }
        return min(asked, now + max(.zero, maximumLifetime))
    }

    private func expiryWithoutCeiling(_ lifetime: Lifetime, at now: Timestamp) -> Timestamp {
        switch lifetime {
        case .standard, .never: .distantFuture
        case .duration(let duration): now + max(.zero, duration)
        case .until(let moment): moment
        }
    }
}

extension BodyDigest {
    /// The digest, unless another one was declared; then `digestMismatch`.
    fileprivate func requiring(_ declared: Digest?, of key: Key) throws -> BodyDigest {
        if let declared, declared != value { throw Store.mismatch(key, declared, value) }
        return self
    }
}
