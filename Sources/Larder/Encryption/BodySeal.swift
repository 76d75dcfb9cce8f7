import Crypto
import Locks

/// What is wrong with an encrypted body file.
struct SealDamage: Error, CustomStringConvertible {
    let description: String
}

/// Encrypts one body file: chunks of 16 KiB, each sealed with AES-256-GCM (NIST SP 800-38D) under a key of the file, so
/// that a range of it can be read, and written, alone.
///
/// The file begins with a head of 96 bytes: a random salt, from which and from the store's key the key of the file is
/// made; and two codes (HMAC-SHA-256), which bind it to the body in progress and to the complete body that it holds.
/// Then each chunk has a slot: a nonce of 12 bytes, the length of what it holds (u16, little-endian), where that begins
/// in the chunk (u16), its ciphertext, and a tag of 16 bytes. A chunk is bound to its place, its length and its
/// beginning, by its key to its file and so to its store. All but the last of a complete body are full.
///
/// A chunk is sealed when it is full, and never again: what has arrived of the others stays in memory until then. So no
/// crash, full disk or reader meets a chunk that is being changed. When a writer leaves a body in progress, the longest
/// run of each such chunk is written; the index stops to name it before the next writer writes the chunk again.
///
/// One thread at a time writes, any may read.
final class BodySeal: Sendable {
    static let chunkLength = 16 << 10
    private static let slotHead = 16
    private static let tagLength = 16
    static let slotLength = slotHead + chunkLength + tagLength
    static let headLength = 96
    private static let saltLength = 32
    private static let codeLength = 32
    /// Slots that are read or written at once.
    private static let slotsAtOnce = 16
    /// Chunks of a body in progress that are not full, at most: 8 MiB.
    private static let mostOpen = 512

    /// A chunk that is not full.
    private struct OpenChunk {
        var bytes = [UInt8](repeating: 0, count: chunkLength)
        /// What of it is there.
        var parts = StoredRanges()
        /// What of it was written to the file.
        var run: Range<Int64> = 0..<0
    }

    private struct State {
        var open: [Int64: OpenChunk] = [:]
        /// Where the last slot ends that was written.
        var end = Int64(headLength)
        /// Of several that write one file, each has nonces of its own.
        var noncePrefix = Array(Array(AES.GCM.Nonce())[..<8])
        var nonceNumber: UInt32 = 0
    }

    private let key: SymmetricKey
    private let codeKey: SymmetricKey
    private let salt: [UInt8]
    private let state = EngineMutex(State())

    private init(_ cipher: StoreCipher, salt: [UInt8]) {
        self.salt = salt
        let fileKey = cipher.fileKey(salt: salt)
        func derive(_ use: String) -> SymmetricKey {
            HKDF<SHA256>.deriveKey(inputKeyMaterial: fileKey, info: Array("larder: \(use)".utf8), outputByteCount: 32)
        }
        key = derive("chunks")
        codeKey = derive("codes of the head")
    }

    // MARK: Lengths

    /// The length of the file of a body whose stored form has `length` bytes.
    static func fileLength(_ length: Int64) -> Int64 {
        let length = min(length, 1 << 60)
        let chunks = (length + Int64(chunkLength) - 1) / Int64(chunkLength)
        return Int64(headLength) + length + chunks * Int64(slotHead + tagLength)
    }

    /// The length that a file has at least which has bytes up to `end`, maybe not those before.
    static func leastFileLength(_ end: Int64) -> Int64 {
        end == 0 ? Int64(headLength) : slot((min(end, 1 << 60) - 1) / Int64(chunkLength)) + Int64(slotHead + tagLength)
    }

    /// Where some ranges lie in the file, of which each chunk has one run.
    static func places(of ranges: StoredRanges) -> StoredRanges {
        var places = StoredRanges()
        places.insert(0..<Int64(headLength))
        let full = fullChunks(ranges, total: nil)
        for range in full.list {
            places.insert(slot(range.lowerBound / Int64(chunkLength))..<slot(range.upperBound / Int64(chunkLength)))
        }
        for range in ranges.list {
            for gap in full.gaps(in: range) {
                // In one chunk, or in two beside each other.
                for number in gap.lowerBound / Int64(chunkLength)...(gap.upperBound - 1) / Int64(chunkLength) {
                    let count = gap.clamped(to: bytes(of: number)).count
                    places.insert(slot(number)..<slot(number) + Int64(slotHead + count + tagLength))
                }
            }
        }
        return places
    }

    /// The part of some ranges that is in full chunks: what the index may name while a writer has the body.
    /// - Parameter total: the length of the body; nil if it is not known.
    static func fullChunks(_ ranges: StoredRanges, total: Int64?) -> StoredRanges {
        var full = StoredRanges()
        let chunk = Int64(chunkLength)
        for range in ranges.list {
            let start = (range.lowerBound + chunk - 1) / chunk * chunk
            let end = range.upperBound == total ? range.upperBound : range.upperBound / chunk * chunk
            if start < end { full.insert(start..<end) }
        }
        return full
    }

    /// Where the last slot ends that this has written.
    var end: Int64 { state.withLock { $0.end } }

    private static func slot(_ number: Int64) -> Int64 { Int64(headLength) + number * Int64(slotLength) }

    private static func bytes(of number: Int64) -> Range<Int64> {
        number * Int64(chunkLength)..<(number + 1) * Int64(chunkLength)
    }

    // MARK: The head

    /// For a new file.
    convenience init(_ cipher: StoreCipher) { self.init(cipher, salt: SymmetricKey(size: .bits256).bytes) }

    /// Writes the head of a new file, or of one that was emptied: nothing else is in it.
    /// - Parameter partial: the number of the body in progress that it is for. Nil: it is for a complete body.
    func begin(_ file: OwnedDescriptor, partial: Digest? = nil) throws {
        state.withLock { ($0.open, $0.end) = ([:], Int64(Self.headLength)) }
        let none = [UInt8](repeating: 0, count: Self.codeLength)
        let code = partial.map { self.code(of: Self.message($0)) } ?? none
        try FileSystem.write(file, salt + code + none, at: 0, path: nil)
    }

    /// For a file that is there. Throws `SealDamage` if its head is not one for the body of `head`.
    static func open(_ file: OwnedDescriptor, _ cipher: StoreCipher, _ head: BlobRecord) throws -> BodySeal {
        var bytes = [UInt8](repeating: 0, count: headLength)
        let count = try bytes.withUnsafeMutableBytes { try FileSystem.read(file, into: $0, at: 0, path: nil) }
        guard count == headLength else { throw SealDamage(description: "its head is cut off") }
        let isPartial = head.encoding == .partial
        // Of one that is being written, each writer and reader has its own.
        if !isPartial, let seal = cipher.seals.seal(bytes, of: head) { return seal }
        let seal = BodySeal(cipher, salt: Array(bytes[..<saltLength]))
        let start = isPartial ? saltLength : saltLength + codeLength
        let message = isPartial ? message(head.digest) : message(head.digest, head.storedLength, head.encoding)
        guard
            HMAC<SHA256>.isValidAuthenticationCode(
                bytes[start..<(start + codeLength)], authenticating: message, using: seal.codeKey)
        else { throw SealDamage(description: "its head is not that of the body") }
        if !isPartial { cipher.seals.note(seal, bytes, of: head) }
        return seal
    }

    /// Writes the last chunk of a body that is complete, and binds the file to it. May be repeated after an error.
    func finish(_ file: OwnedDescriptor, _ digest: Digest, length: Int64, _ encoding: BodyEncoding) throws {
        let rest = length % Int64(Self.chunkLength)
        if rest > 0 {
            let number = length / Int64(Self.chunkLength)
            // Without it, the last chunk was full before, and is sealed.
            if let chunk = state.withLock({ $0.open[number] }) {
                var slot: [UInt8] = []
                try chunk.bytes[..<Int(rest)].withUnsafeBytes { try seal($0, number, into: &slot) }
                try write(slot, from: number, file)
            }
        }
        state.withLock { $0.open = [:] }
        let code = code(of: Self.message(digest, UInt64(length), encoding))
        try FileSystem.write(file, code, at: Int64(Self.saltLength + Self.codeLength), path: nil)
    }

    private func code(of message: [UInt8]) -> [UInt8] {
        Array(HMAC<SHA256>.authenticationCode(for: message, using: codeKey))
    }

    private static func message(_ partial: Digest) -> [UInt8] { [BodyEncoding.partial.rawValue] + partial.bytes }

    private static func message(_ digest: Digest, _ length: UInt64, _ encoding: BodyEncoding) -> [UInt8] {
        [encoding.rawValue] + digest.bytes + bigEndian(length)
    }
}

// MARK: Reading

extension BodySeal {
    /// Copies bytes into a buffer, as far as there are any; returns how many.
    /// - Parameter length: of what the file holds, where that is complete. Nil: there are holes in it.
    /// - Throws: `SealDamage`, `io`.
    func read(
        _ file: OwnedDescriptor, into buffer: UnsafeMutableRawBufferPointer, at offset: Int64, length: Int64? = nil
    ) throws -> Int {
        let end = min(offset + Int64(buffer.count), length ?? .max)
        var position = offset
        while position < end {
            let target = UnsafeMutableRawBufferPointer(
                rebasing: buffer[Int(position - offset)..<Int(end - offset)])
            let count = try readOpen(into: target, at: position) ?? readSlots(file, into: target, at: position, length)
            if count == 0 { break }
            position += Int64(count)
        }
        return Int(max(position, offset) - offset)
    }

    /// Bytes of a chunk that is in memory; nil if it is not.
    private func readOpen(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) -> Int? {
        let number = offset / Int64(Self.chunkLength)
        return state.withLock { state in
            guard let chunk = state.open[number] else { return nil }
            let start = offset - number * Int64(Self.chunkLength)
            let end = min(chunk.parts.end(from: start), start + Int64(buffer.count))
            chunk.bytes[Int(start)..<Int(end)].withUnsafeBytes { buffer.copyMemory(from: $0) }
            return Int(end - start)
        }
    }

    /// Bytes of one chunk of the file or more; 0 behind the last one.
    private func readSlots(
        _ file: OwnedDescriptor, into buffer: UnsafeMutableRawBufferPointer, at offset: Int64, _ length: Int64?
    ) throws -> Int {
        let chunk = Int64(Self.chunkLength)
        let first = offset / chunk
        let last = (offset + Int64(buffer.count) - 1) / chunk
        // Chunks in memory may follow.
        let known = state.withLock { state in
            state.open.isEmpty ? last : (first...last).prefix { state.open[$0] == nil }.last ?? first
        }
        let count = min(known - first + 1, Int64(Self.slotsAtOnce))
        return try withUnsafeTemporaryAllocation(byteCount: Int(count) * Self.slotLength, alignment: 16) { slots in
            let got = try FileSystem.read(file, into: slots, at: Self.slot(first), path: nil)
            var done = 0
            for number in first..<first + count where done < buffer.count {
                let place = Int(number - first) * Self.slotLength
                if length == nil, place >= got { break }
                let slot = UnsafeRawBufferPointer(rebasing: slots[min(place, got)..<min(place + Self.slotLength, got)])
                let (start, bytes) = try openSlot(slot, number)
                if let length, start > 0 || bytes.count != min(chunk, length - number * chunk) {
                    throw SealDamage(description: "chunk \(number) is not whole")
                }
                let wanted = Int(offset + Int64(done) - number * chunk)
                guard start <= wanted, wanted < start + bytes.count else {
                    throw SealDamage(description: "chunk \(number) has no byte \(wanted)")
                }
                let part = bytes[(wanted - start)...].prefix(buffer.count - done)
                UnsafeMutableRawBufferPointer(rebasing: buffer[done...]).copyBytes(from: part)
                done += part.count
                if start + bytes.count < Self.chunkLength { break }
            }
            return done
        }
    }

    /// What a slot holds, and where that begins in the chunk.
    private func openSlot(_ slot: UnsafeRawBufferPointer, _ number: Int64) throws -> (start: Int, bytes: [UInt8]) {
        guard slot.count >= Self.slotHead else { throw SealDamage(description: "chunk \(number) is cut off") }
        let length = Int(slot.field(12, as: UInt16.self))
        let start = Int(slot.field(14, as: UInt16.self))
        guard start + length <= Self.chunkLength, slot.count >= Self.slotHead + length + Self.tagLength else {
            throw SealDamage(description: "chunk \(number) is cut off")
        }
        let end = Self.slotHead + length
        do {
            let box = try AES.GCM.SealedBox(
                nonce: AES.GCM.Nonce(data: UnsafeRawBufferPointer(rebasing: slot[..<12])),
                ciphertext: UnsafeRawBufferPointer(rebasing: slot[Self.slotHead..<end]),
                tag: UnsafeRawBufferPointer(rebasing: slot[end..<end + Self.tagLength]))
            return (start, Array(try AES.GCM.open(box, using: key, authenticating: Self.place(number, start, length))))
        } catch {
            throw SealDamage(description: "chunk \(number) is not what was written")
        }
    }

    private static func place(_ number: Int64, _ start: Int, _ length: Int) -> [UInt8] {
        bigEndian(UInt64(number)) + bigEndian(UInt64(start << 32 | length))
    }
}

// MARK: Writing

extension BodySeal {
    /// Takes bytes at an offset, and writes the chunks that are full. May be repeated after an error.
    /// - Parameter total: the length of the body, with which its last chunk is full; nil if it is not known.
    /// - Throws: `io`; `tooLarge` for more than 512 chunks that are not full.
    func write(_ file: OwnedDescriptor, _ bytes: UnsafeRawBufferPointer, at offset: Int64, total: Int64? = nil) throws {
        let chunk = Int64(Self.chunkLength)
        var done = 0
        while done < bytes.count {
            let first = (offset + Int64(done)) / chunk
            var slots: [UInt8] = []
            slots.reserveCapacity(min(Self.slotsAtOnce, bytes.count / Self.chunkLength + 1) * Self.slotLength)
            var number = first
            while done < bytes.count, number < first + Int64(Self.slotsAtOnce) {
                let start = Int(offset + Int64(done) - number * chunk)
                let part = UnsafeRawBufferPointer(
                    rebasing: bytes[done..<min(bytes.count, done + Self.chunkLength - start)])
                let whole = min(chunk, (total ?? .max) - number * chunk)
                if part.count == whole {
                    try seal(part, number, into: &slots)
                } else if let full = try take(part, at: start, number, whole) {
                    try full[..<Int(whole)].withUnsafeBytes { try seal($0, number, into: &slots) }
                } else {
                    // The chunks that follow do not lie beside those before.
                    done += part.count
                    break
                }
                done += part.count
                number += 1
            }
            try write(slots, from: first, file)
        }
    }

    /// Keeps bytes of a chunk; returns all of it once it is full.
    private func take(_ part: UnsafeRawBufferPointer, at start: Int, _ number: Int64, _ whole: Int64) throws -> [UInt8]?
    {
        try state.withLock { state in
            if state.open[number] == nil, state.open.count == Self.mostOpen {
                throw LarderError(
                    .tooLarge,
                    "an encrypted body is in \(Self.mostOpen) separate ranges, the most there can be: fill gaps first")
            }
            state.open[number, default: OpenChunk()].bytes.replaceSubrange(start..<start + part.count, with: part)
            state.open[number]?.parts.insert(Int64(start)..<Int64(start + part.count))
            guard let chunk = state.open[number], chunk.parts.covers(whole) else { return nil }
            return chunk.bytes
        }
    }

    /// Writes slots that follow each other, whose chunks are full.
    private func write(_ slots: [UInt8], from first: Int64, _ file: OwnedDescriptor) throws {
        if slots.isEmpty { return }
        try slots.withUnsafeBytes { try FileSystem.write(file, $0, at: Self.slot(first), path: nil) }
        state.withLock { state in
            let end = Self.slot(first) + Int64(slots.count)
            state.end = max(state.end, end)
            var number = first
            while Self.slot(number) < end {
                state.open[number] = nil
                number += 1
            }
        }
    }

    private func seal(
        _ bytes: UnsafeRawBufferPointer, _ number: Int64, from start: Int = 0, into slots: inout [UInt8]
    ) throws {
        let nonce = state.withLock { state in
            state.nonceNumber += 1
            // Before a number comes back: the prefix is random.
            if state.nonceNumber == .max {
                (state.noncePrefix, state.nonceNumber) = (Array(Array(AES.GCM.Nonce())[..<8]), 1)
            }
            return state.noncePrefix + bigEndian(UInt64(state.nonceNumber)).suffix(4)
        }
        let box = try AES.GCM.seal(
            bytes, using: key, nonce: AES.GCM.Nonce(data: nonce),
            authenticating: Self.place(number, start, bytes.count))
        slots += nonce
        for word in [bytes.count, start] { withUnsafeBytes(of: UInt16(word).littleEndian) { slots += $0 } }
        slots += box.ciphertext
        slots += box.tag
    }
}

// MARK: Bodies in progress

extension BodySeal {
    /// Writes the longest run of each chunk that is not full, for a later writer: this one is over.
    func leave(_ file: OwnedDescriptor) throws {
        for (number, chunk) in state.withLock({ $0.open }) {
            guard let run = chunk.parts.list.max(by: { $0.count < $1.count }) else { continue }
            var slot: [UInt8] = []
            try chunk.bytes[Int(run.lowerBound)..<Int(run.upperBound)].withUnsafeBytes {
                try seal($0, number, from: Int(run.lowerBound), into: &slot)
            }
            try slot.withUnsafeBytes { try FileSystem.write(file, $0, at: Self.slot(number), path: nil) }
            state.withLock { state in
                state.open[number]?.run = run
                state.end = max(state.end, Self.slot(number) + Int64(slot.count))
            }
        }
    }

    /// The part of some ranges that is in the file.
    func written(_ ranges: StoredRanges) -> StoredRanges {
        state.withLock { state in
            var written = ranges
            for (number, chunk) in state.open {
                let bytes = Self.bytes(of: number)
                written.remove(bytes)
                written.insert(bytes.lowerBound + chunk.run.lowerBound..<bytes.lowerBound + chunk.run.upperBound)
            }
            return written
        }
    }

    /// Takes into memory what an earlier writer has left of chunks that are not full.
    /// - Parameter ranges: what the index says is there.
    /// - Returns: what is: a chunk that cannot be opened is not.
    func takeOver(_ file: OwnedDescriptor, _ ranges: StoredRanges, total: Int64?) throws -> StoredRanges {
        let full = Self.fullChunks(ranges, total: total)
        var found = full
        for range in ranges.list {
            for part in full.gaps(in: range) {
                let number = part.lowerBound / Int64(Self.chunkLength)
                // A gap is within a chunk, or in two beside each other.
                for number in number...(part.upperBound - 1) / Int64(Self.chunkLength) {
                    let part = part.clamped(to: Self.bytes(of: number))
                    // What is too much for the memory is lost.
                    if state.withLock({ $0.open[number] == nil && $0.open.count == Self.mostOpen }) { continue }
                    var bytes = [UInt8](repeating: 0, count: part.count)
                    do {
                        let count = try bytes.withUnsafeMutableBytes { try read(file, into: $0, at: part.lowerBound) }
                        if count < part.count { continue }
                    } catch is SealDamage {
                        continue
                    }
                    found.insert(part)
                    let start = Int(part.lowerBound - Self.bytes(of: number).lowerBound)
                    _ = try bytes.withUnsafeBytes { try take($0, at: start, number, .max) }
                }
            }
        }
        state.withLock { $0.end = Self.leastFileLength(full.end) }
        return found
    }
}
