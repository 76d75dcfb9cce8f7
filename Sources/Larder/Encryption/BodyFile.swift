import SystemPackage

/// The file of a body, and what encrypts it; nil in a store that is not encrypted.
struct BodyFile: Sendable {
    let descriptor: OwnedDescriptor
    let seal: BodySeal?

    /// Copies bytes of what the file holds into a buffer, as far as there are any; returns how many.
    /// - Parameter length: of what it holds. Nil: as far as it was written.
    /// - Throws: `SealDamage`, `io`.
    func read(
        into buffer: UnsafeMutableRawBufferPointer, at offset: Int64, length: Int64? = nil,
        path: @autoclosure () -> FilePath?
    ) throws -> Int {
        if let seal { return try seal.read(descriptor, into: buffer, at: offset, length: length) }
        return try FileSystem.read(descriptor, into: buffer, at: offset, path: path())
    }

    /// As above; damage is an error of the store.
    func readSound(
        into buffer: UnsafeMutableRawBufferPointer, at offset: Int64, length: Int64? = nil,
        path: @autoclosure () -> FilePath?
    ) throws -> Int {
        do {
            return try read(into: buffer, at: offset, length: length, path: path())
        } catch let damage as SealDamage {
            throw LarderError(sealDamage: damage, path())
        }
    }

    /// - Parameter total: the length of the body, if it is known.
    func write(
        _ bytes: UnsafeRawBufferPointer, at offset: Int64, total: Int64? = nil, path: @autoclosure () -> FilePath?
    ) throws {
        guard let seal else { return try FileSystem.write(descriptor, bytes, at: offset, path: path()) }
        try seal.write(descriptor, bytes, at: offset, total: total)
    }

    /// The file holds a complete body now.
    func finish(_ digest: Digest, length: Int64, _ encoding: BodyEncoding = .identity) throws {
        try seal?.finish(descriptor, digest, length: length, encoding)
    }

    /// The length that the file has at least after writes up to `end`.
    func writtenLength(_ end: Int64) -> Int64 { seal?.end ?? end }

    /// The length of the file when it holds that many bytes.
    func fileLength(_ length: Int64) -> Int64 { seal == nil ? length : BodySeal.fileLength(length) }

    /// SHA-256 of what it holds; nil if that has another length.
    /// - Parameter pause: called between pieces; what it throws is passed on.
    func digest(length: UInt64, pause: () throws -> Void = {}) throws -> Digest? {
        guard seal != nil else { return try Digest.of(descriptor, length: length, pause: pause) }
        let length = Int64(clamping: length)
        var hash = IncrementalDigest()
        var offset: Int64 = 0
        let space = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 16)
        defer { space.deallocate() }
        while offset < length {
            let count = try read(into: space, at: offset, length: length, path: nil)
            if count == 0 { return nil }
            hash.update(UnsafeRawBufferPointer(rebasing: space[..<count]))
            offset += Int64(count)
            try pause()
        }
        return hash.finalize()
    }
}

extension LarderError {
    /// What an encrypted file has that cannot be read.
    init(sealDamage damage: SealDamage, _ path: FilePath?) {
        let name = path.map { " \($0)" } ?? ""
        self.init(.corruption, "the body\(name) cannot be read: \(damage)", remedy: .repair, path: path)
    }
}

extension StoreFiles {
    /// The file of a body that was opened. Throws `SealDamage` if it is not encrypted as that of the body.
    func bodyFile(_ descriptor: OwnedDescriptor, _ head: BlobRecord) throws -> BodyFile {
        BodyFile(
            descriptor: descriptor, seal: try cipher.map { try BodySeal.open(descriptor, $0, head) })
    }

    /// The length of a file that holds `length` bytes.
    func fileLength(_ length: Int64) -> Int64 { cipher == nil ? length : BodySeal.fileLength(length) }

    /// The length that the file of a body has, or of one in progress at least.
    func fileLength(_ head: BlobRecord) -> Int64 {
        let length = Int64(clamping: head.storedLength)
        return head.encoding == .partial ? leastFileLength(length) : fileLength(length)
    }

    /// The length that the file of a body in progress has at least, of which the last byte that is there ends at `end`.
    func leastFileLength(_ end: Int64) -> Int64 { cipher == nil ? end : BodySeal.leastFileLength(end) }

    /// The name of the file of a body.
    func name(of digest: Digest) -> BlobName { BlobName(cipher?.name(of: digest) ?? digest) }

    /// The digest of the body whose file has a name; nil if no body's can have it.
    func digest(ofFile name: String) -> Digest? {
        Digest(hexadecimal: name).map { cipher?.digest(named: $0) ?? $0 }
    }

    /// True if a file holds the bytes of the digest.
    /// - Parameter pause: called between pieces; what it throws is passed on.
    func matches(_ descriptor: OwnedDescriptor, _ head: BlobRecord, pause: () throws -> Void = {}) throws -> Bool {
        do {
            return try head.matches(bodyFile(descriptor, head), pause: pause)
        } catch is SealDamage {
            return false
        }
    }
}
