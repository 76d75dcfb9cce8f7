import Crypto
import LMDB
import Locks

/// Seals rows of the index with AES-256-GCM (NIST SP 800-38D).
///
/// A sealed row is 12 bytes of salt, a number of 4 bytes, the ciphertext, and a tag of 16 bytes. Salt and row key make
/// the key of a *series* (HKDF), and the number is the nonce under it. Each process that opens the store begins a
/// series, and another one after 2^32 rows: so no nonce is used twice, however many rows are written.
final class SealedRows: RowCipher {
    private struct Series: Sendable {
        let salt: [UInt8]
        let key: SymmetricKey
    }

    private struct Writer {
        var series: Series
        var next: UInt32 = 0
    }

    private static let saltLength = 12
    private static let numberLength = 4
    private static let headLength = saltLength + numberLength
    private static let tagLength = 16
    /// Keys of series that were read.
    private static let mostKnown = 1024

    let overhead = headLength + tagLength

    private let rowKey: SymmetricKey
    private let nameKey: SymmetricKey
    private let writer: EngineMutex<Writer>
    private let known = EngineMutex<[[UInt8]: SymmetricKey]>([:])

    init(rowKey: SymmetricKey, nameKey: SymmetricKey) {
        self.rowKey = rowKey
        self.nameKey = nameKey
        writer = EngineMutex(Writer(series: Self.series(rowKey)))
    }

    private static func series(_ rowKey: SymmetricKey) -> Series {
        let salt = Array(AES.GCM.Nonce())
        return Series(salt: salt, key: key(rowKey, salt))
    }

    private static func key(_ rowKey: SymmetricKey, _ salt: [UInt8]) -> SymmetricKey {
        HKDF<SHA256>.deriveKey(
            inputKeyMaterial: rowKey, salt: salt, info: Array("larder: a series".utf8), outputByteCount: 32)
    }

    private func key(of salt: [UInt8]) -> SymmetricKey {
        known.withLock { known in
            if let key = known[salt] { return key }
            let key = Self.key(rowKey, salt)
            if known.count == Self.mostKnown { known = [:] }
            known[salt] = key
            return key
        }
    }

    private static func nonce(_ number: some Sequence<UInt8>) -> AES.GCM.Nonce {
        do {
            return try AES.GCM.Nonce(data: [0, 0, 0, 0, 0, 0, 0, 0] + number)
        } catch {
            preconditionFailure("a nonce of 12 bytes: \(error)")
        }
    }

    func seal(
        _ row: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer, at place: UnsafeRawBufferPointer
    ) {
        let (series, number) = writer.withLock { writer in
            if writer.next == .max { writer = Writer(series: Self.series(rowKey)) }
            writer.next += 1
            return (writer.series, bigEndian(UInt64(writer.next)).suffix(Self.numberLength))
        }
        do {
            let box = try AES.GCM.seal(row, using: series.key, nonce: Self.nonce(number), authenticating: place)
            target.copyBytes(from: series.salt + number)
            UnsafeMutableRawBufferPointer(rebasing: target[Self.headLength...]).copyBytes(from: box.ciphertext)
            UnsafeMutableRawBufferPointer(rebasing: target[(Self.headLength + row.count)...]).copyBytes(from: box.tag)
        } catch {
            preconditionFailure("AES-GCM does not seal: \(error)")  // Keys and nonces have their lengths.
        }
    }

    func open(
        _ sealed: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer, at place: UnsafeRawBufferPointer
    ) -> Bool {
        let end = sealed.count - Self.tagLength
        let salt = Array(sealed[..<Self.saltLength])
        do {
            let box = try AES.GCM.SealedBox(
                nonce: Self.nonce(sealed[Self.saltLength..<Self.headLength]),
                ciphertext: UnsafeRawBufferPointer(rebasing: sealed[Self.headLength..<end]),
                tag: UnsafeRawBufferPointer(rebasing: sealed[end...]))
            target.copyBytes(from: try AES.GCM.open(box, using: key(of: salt), authenticating: place))
            return true
        } catch {
            return false
        }
    }

    func hide(_ name: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer) {
        HMAC<SHA256>.authenticationCode(for: name, using: nameKey).withUnsafeBytes {
            target.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[..<HiddenKey.length]))
        }
    }
}
