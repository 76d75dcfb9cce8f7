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
/// Then each chunk has a slot: a nonce of 12 bytes, its length (u32, little-endian), its ciphertext, and a tag of 16
/// bytes. A chunk is bound to its place and length, by its key to its file and so to its store. All but the last of a
/// complete body are full; a slot that was not written yet has a nonce of zeros.
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

    private let key: SymmetricKey
    private let codeKey: SymmetricKey
    private let salt: [UInt8]
    /// Of several that write one file, each has nonces of its own.
    private let nonces: EngineMutex<(prefix: [UInt8], next: UInt32)>
    /// The last chunk that was written in part, by its number: the next write often continues in it.
    private let open = EngineMutex<(number: Int64, bytes: [UInt8])?>(nil)

    private init(_ cipher: StoreCipher, salt: [UInt8]) {
        self.salt = salt
        let fileKey = cipher.fileKey(salt: salt)
        func derive(_ use: String) -> SymmetricKey {
            HKDF<SHA256>.deriveKey(inputKeyMaterial: fileKey, info: Array("larder: \(use)".utf8), outputByteCount: 32)
        }
        key = derive("chunks")
        codeKey = derive("codes of the head")
        nonces = EngineMutex((Array(Array(AES.GCM.Nonce())[..<8]), 0))
    }

    /// The length of the file of a body whose stored form has `length` bytes.
    static func fileLength(_ length: Int64) -> Int64 {
        let chunks = (length + Int64(chunkLength) - 1) / Int64(chunkLength)
        return Int64(headLength) + length + chunks * Int64(slotHead + tagLength)
    }

    private static func slot(_ number: Int64) -> Int64 { Int64(headLength) + number * Int64(slotLength) }

    // MARK: The head

    /// For a new file.
    convenience init(_ cipher: StoreCipher) { self.init(cipher, salt: SymmetricKey(size: .bits256).bytes) }

    /// Writes the head of a new file.
    /// - Parameter partial: the number of the body in progress that it is for. Nil: it is for a complete body.
    func begin(_ file: OwnedDescriptor, partial: Digest? = nil) throws {
        let none = [UInt8](repeating: 0, count: Self.codeLength)
        let code = partial.map { self.code(of: Self.message($0)) } ?? none
        try FileSystem.write(file, salt + code + none, at: 0, path: nil)
    }

    /// For a file that is there. Throws `SealDamage` if its head is not one for the body of `head`.
    static func open(_ file: OwnedDescriptor, _ cipher: StoreCipher, _ head: BlobRecord) throws -> BodySeal {
        var bytes = [UInt8](repeating: 0, count: headLength)
        let count = try bytes.withUnsafeMutableBytes { try FileSystem.read(file, into: $0, at: 0, path: nil) }
        guard count == headLength else { throw SealDamage(description: "its head is cut off") }
        let seal = BodySeal(cipher, salt: Array(bytes[..<saltLength]))
        let isPartial = head.encoding == .partial
        let start = isPartial ? saltLength : saltLength + codeLength
        let message = isPartial ? message(head.digest) : message(head.digest, head.storedLength, head.encoding)
        guard
            HMAC<SHA256>.isValidAuthenticationCode(
                bytes[start..<(start + codeLength)], authenticating: message, using: seal.codeKey)
        else { throw SealDamage(description: "its head is not that of the body") }
        return seal
    }

    /// Binds a file that is complete to its body.
    func finish(_ file: OwnedDescriptor, _ digest: Digest, length: Int64, _ encoding: BodyEncoding) throws {
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

    // MARK: Reading

    /// Copies bytes into a buffer, as far as there are any; returns how many.
    /// - Parameter length: of what the file holds. Nil: as far as it was written.
    /// - Throws: `SealDamage`, `io`.
    func read(
        _ file: OwnedDescriptor, into buffer: UnsafeMutableRawBufferPointer, at offset: Int64, length: Int64? = nil
    ) throws -> Int {
        let end = min(offset + Int64(buffer.count), length ?? .max)
        var position = offset
        let chunk = Int64(Self.chunkLength)
        while position < end {
            let first = position / chunk
            let count = min((end - 1) / chunk - first + 1, Int64(Self.slotsAtOnce))
            let start = position
            try withUnsafeTemporaryAllocation(byteCount: Int(count) * Self.slotLength, alignment: 16) { slots in
                let got = try FileSystem.read(file, into: slots, at: Self.slot(first), path: nil)
                for number in first..<first + count {
                    let place = Int(number - first) * Self.slotLength
                    let slot = UnsafeRawBufferPointer(
                        rebasing: slots[min(place, got)..<min(place + Self.slotLength, got)])
                    let bytes = try openSlot(slot, number)
                    if let length, bytes.count != min(chunk, length - number * chunk) {
                        throw SealDamage(description: "chunk \(number) has \(bytes.count) bytes")
                    }
                    let skipped = Int(position - number * chunk)
                    guard skipped < bytes.count else { return }
                    let part = bytes[skipped..<min(bytes.count, Int(end - number * chunk))]
                    UnsafeMutableRawBufferPointer(rebasing: buffer[Int(position - offset)...]).copyBytes(from: part)
                    position += Int64(part.count)
                    if bytes.count < Self.chunkLength { return }
                }
            }
            // The end of what was written.
            if position == start || position % chunk != 0 { break }
        }
        return Int(position - offset)
    }

    /// The bytes of a chunk; none if it was not written yet.
    private func openSlot(_ slot: UnsafeRawBufferPointer, _ number: Int64) throws -> [UInt8] {
        if slot.prefix(Self.slotHead).allSatisfy({ $0 == 0 }) { return [] }
        let length = slot.count < Self.slotHead ? Int.max : Int(slot.field(12, as: UInt32.self))
        guard length <= Self.chunkLength, slot.count >= Self.slotHead + length + Self.tagLength else {
            throw SealDamage(description: "chunk \(number) is cut off")
        }
        let end = Self.slotHead + length
        do {
            let box = try AES.GCM.SealedBox(
                nonce: AES.GCM.Nonce(data: UnsafeRawBufferPointer(rebasing: slot[..<12])),
                ciphertext: UnsafeRawBufferPointer(rebasing: slot[Self.slotHead..<end]),
                tag: UnsafeRawBufferPointer(rebasing: slot[end..<end + Self.tagLength]))
            return Array(try AES.GCM.open(box, using: key, authenticating: Self.place(number, length)))
        } catch {
            throw SealDamage(description: "chunk \(number) is not what was written")
        }
    }

    private static func place(_ number: Int64, _ length: Int) -> [UInt8] {
        bigEndian(UInt64(number)) + bigEndian(UInt64(length))
    }

    // MARK: Writing

    /// Writes bytes at an offset. One thread at a time writes a file. A chunk that has some of them already is written
    /// again: if the process dies in between, the chunk may be damaged, and is then noticed.
    func write(_ file: OwnedDescriptor, _ bytes: UnsafeRawBufferPointer, at offset: Int64) throws {
        let chunk = Int64(Self.chunkLength)
        var done = 0
        while done < bytes.count {
            let first = (offset + Int64(done)) / chunk
            var slots: [UInt8] = []
            slots.reserveCapacity(min(Self.slotsAtOnce, bytes.count / Self.chunkLength + 2) * Self.slotLength)
            var number = first
            while done < bytes.count, number < first + Int64(Self.slotsAtOnce) {
                let start = Int(offset + Int64(done) - number * chunk)
                let end = min(Self.chunkLength, start + bytes.count - done)
                let part = UnsafeRawBufferPointer(rebasing: bytes[done..<done + end - start])
                if end - start == Self.chunkLength {
                    try sealSlot(part, number, into: &slots)
                } else {
                    let whole = try merge(part, at: start, file, number)
                    try whole.withUnsafeBytes { try sealSlot($0, number, into: &slots) }
                }
                done += part.count
                number += 1
            }
            try slots.withUnsafeBytes { try FileSystem.write(file, $0, at: Self.slot(first), path: nil) }
        }
    }

    /// Makes the last of `length` bytes the last of its chunk; the file still has to be cut behind it.
    func cut(_ file: OwnedDescriptor, to length: Int64) throws {
        let number = length / Int64(Self.chunkLength)
        let rest = Int(length % Int64(Self.chunkLength))
        open.withLock { $0 = nil }
        if rest == 0 { return }
        let bytes = try chunk(number, of: file)
        if bytes.count <= rest { return }
        var slot: [UInt8] = []
        try bytes[..<rest].withUnsafeBytes { try sealSlot($0, number, into: &slot) }
        try slot.withUnsafeBytes { try FileSystem.write(file, $0, at: Self.slot(number), path: nil) }
    }

    /// The bytes of a chunk; none if it was not written yet.
    private func chunk(_ number: Int64, of file: OwnedDescriptor) throws -> [UInt8] {
        try withUnsafeTemporaryAllocation(byteCount: Self.slotLength, alignment: 16) { slot in
            let count = try FileSystem.read(file, into: slot, at: Self.slot(number), path: nil)
            return try openSlot(UnsafeRawBufferPointer(rebasing: slot[..<count]), number)
        }
    }

    /// A chunk with these bytes in it, and what it had.
    private func merge(
        _ part: UnsafeRawBufferPointer, at start: Int, _ file: OwnedDescriptor, _ number: Int64
    ) throws -> [UInt8] {
        var bytes = open.withLock { $0?.number == number ? $0?.bytes : nil } ?? []
        if bytes.isEmpty { bytes = try chunk(number, of: file) }
        let end = start + part.count
        if bytes.count < end { bytes += [UInt8](repeating: 0, count: end - bytes.count) }
        bytes.replaceSubrange(start..<end, with: part)
        open.withLock { [bytes] in $0 = (number, bytes) }
        return bytes
    }

    private func sealSlot(_ bytes: UnsafeRawBufferPointer, _ number: Int64, into slots: inout [UInt8]) throws {
        let nonce = nonces.withLock { nonces in
            nonces.next += 1
            // Before a number comes back: the prefix is random.
            if nonces.next == .max { nonces = (Array(Array(AES.GCM.Nonce())[..<8]), 1) }
            return nonces.prefix + bigEndian(UInt64(nonces.next)).suffix(4)
        }
        let box = try AES.GCM.seal(
            bytes, using: key, nonce: AES.GCM.Nonce(data: nonce), authenticating: Self.place(number, bytes.count))
        slots += nonce
        withUnsafeBytes(of: UInt32(bytes.count).littleEndian) { slots += $0 }
        slots += box.ciphertext
        slots += box.tag
    }
}
