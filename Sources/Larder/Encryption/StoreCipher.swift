import Crypto
import CryptoExtras

/// The keys of an open encrypted store, derived from its data key (HKDF, RFC 5869), each for one use.
final class StoreCipher: Sendable {
    /// Seals rows of the index.
    let rows: SealedRows
    /// Seals body files.
    private let fileKey: SymmetricKey
    private let fileNameKey: SymmetricKey
    let seals = SealMemory()
    /// Shows which data key it is, and not what it is.
    let proof: [UInt8]

    init(_ dataKey: SymmetricKey) {
        func derive(_ use: String) -> SymmetricKey {
            HKDF<SHA256>.deriveKey(
                inputKeyMaterial: dataKey, info: Array("larder: \(use)".utf8), outputByteCount: 32)
        }
        rows = SealedRows(rowKey: derive("rows"), nameKey: derive("names in rows"))
        fileKey = derive("body files")
        fileNameKey = derive("names of body files")
        proof = derive("proof").bytes
    }

    /// True if both are of the same data key.
    func isSame(as other: StoreCipher) -> Bool { proof == other.proof }

    // MARK: Body files

    /// The key of one file.
    func fileKey(salt: [UInt8]) -> SymmetricKey {
        HKDF<SHA256>.deriveKey(
            inputKeyMaterial: fileKey, salt: salt, info: Array("larder: a body file".utf8), outputByteCount: 32)
    }

    /// What stands for a digest in names of files. It can be turned back: files are found by their names, too.
    func name(of digest: Digest) -> Digest {
        var (first, second) = Self.halves(of: digest)
        Self.apply { try AES.permute(&first, key: fileNameKey) }
        for place in second.indices { second[place] ^= first[place] }
        Self.apply { try AES.permute(&second, key: fileNameKey) }
        return Digest(joining: first, second)
    }

    /// The digest that a name stands for.
    func digest(named name: Digest) -> Digest {
        var (first, second) = Self.halves(of: name)
        Self.apply { try AES.inversePermute(&second, key: fileNameKey) }
        for place in second.indices { second[place] ^= first[place] }
        Self.apply { try AES.inversePermute(&first, key: fileNameKey) }
        return Digest(joining: first, second)
    }

    private static func halves(of digest: Digest) -> ([UInt8], [UInt8]) {
        let bytes = digest.bytes
        return (Array(bytes[..<16]), Array(bytes[16...]))
    }

    private static func apply(_ step: () throws -> Void) {
        do { try step() } catch { preconditionFailure("AES: \(error)") }  // Only a wrong length of key or block fails.
    }
}

extension Digest {
    fileprivate init(joining first: [UInt8], _ second: [UInt8]) {
        self = (first + second).withUnsafeBytes { Digest(copying: $0) }
    }
}
