/// What is stored for a blob, compared with its digest.
extension BlobRecord {
    /// Bytes that compression saves.
    var compressionGain: UInt64 { encoding == .gzip && !isDamaged && length > storedLength ? length - storedLength : 0 }

    /// The body of an inline blob; nil if what is stored cannot be decompressed.
    /// - Parameter stored: `inlineBytes` of its record.
    func body(ofInline stored: UnsafeRawBufferPointer) throws -> [UInt8]? {
        if encoding != .gzip { return Array(stored) }
        do {
            return try GzipReader.body(of: stored, length: Int(clamping: length))
        } catch is GzipDamage {
            return nil
        }
    }

    /// True if the stored bytes of an inline blob are those of its digest.
    func matches(inline stored: UnsafeRawBufferPointer) throws -> Bool {
        if encoding != .gzip { return Digest.of(stored) == digest }
        return try body(ofInline: stored).map { Digest.of($0) == digest } ?? false
    }

    /// As above, of bytes that may lie in sectors that cannot be read.
    func matches(inline stored: UnsafeRawBufferPointer, by memory: GuardedMemory) throws -> Bool {
        if encoding != .gzip { return memory.digest(of: stored) == digest }
        guard let copy = memory.copy(of: stored) else { return false }
        return try copy.withUnsafeBytes { try matches(inline: $0) }
    }

    /// True if a file holds the bytes of the digest.
    /// - Parameter pause: called between pieces; what it throws is passed on.
    func matches(_ file: BodyFile, pause: () throws -> Void = {}) throws -> Bool {
        guard encoding == .gzip else { return try file.digest(length: storedLength, pause: pause) == digest }
        guard try FileSystem.status(file.descriptor, path: nil).size == file.fileLength(Int64(clamping: storedLength))
        else { return false }
        do {
            return try digest(ofCompressed: file, pause) == digest
        } catch is GzipDamage {
            return false
        }
    }

    private func digest(ofCompressed file: BodyFile, _ pause: () throws -> Void) throws -> Digest {
        let reader = try GzipReader()
        var hash = IncrementalDigest()
        var offset: Int64 = 0
        let length = Int64(clamping: storedLength)
        let source: GzipReader.Source = { buffer in
            let count = try file.read(into: buffer, at: offset, length: length, path: nil)
            offset += Int64(count)
            return count
        }
        try withUnsafeTemporaryAllocation(byteCount: 64 << 10, alignment: 16) { space in
            while UInt64(reader.position) < self.length {
                let part = UnsafeMutableRawBufferPointer(
                    rebasing: space[..<Int(min(UInt64(space.count), self.length - UInt64(reader.position)))])
                let count = try reader.read(into: part, from: source)
                if count < part.count { throw GzipDamage(description: "it is shorter than the body") }
                hash.update(UnsafeRawBufferPointer(part))
                try pause()
            }
        }
        try reader.finish(from: source)
        return hash.finalize()
    }
}
