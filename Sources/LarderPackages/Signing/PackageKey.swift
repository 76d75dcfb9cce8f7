import Crypto

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A public key that packages are signed with: Ed25519 (RFC 8032).
public struct PackageKey: Sendable, Hashable, CustomStringConvertible {
    /// The 32 bytes.
    public let bytes: [UInt8]

    /// Makes a key from its bytes.
    ///
    /// - Parameter bytes: 32 of them; nil for any others.
    public init?(bytes: [UInt8]) {
        guard bytes.count == 32, (try? Curve25519.Signing.PublicKey(rawRepresentation: bytes)) != nil else {
            return nil
        }
        self.bytes = bytes
    }

    /// Reads a key as `openssl pkey -pubout` writes it (PEM, RFC 8410), or its 32 bytes in Base64.
    ///
    /// - Parameter text: the content of a file; nil for anything else.
    public init?(_ text: String) {
        guard let bytes = KeyFile.bytes(text, label: "PUBLIC KEY", prefix: KeyFile.publicPrefix) else { return nil }
        self.init(bytes: bytes)
    }

    /// The key in Base64.
    public var description: String { Data(bytes).base64EncodedString() }

    func isValid(_ signature: [UInt8], for message: [UInt8]) -> Bool {
        (try? Curve25519.Signing.PublicKey(rawRepresentation: bytes))?.isValidSignature(signature, for: message)
            ?? false
    }
}

/// A private key to sign packages with.
public struct PackageSigningKey: Sendable {
    private let key: Curve25519.Signing.PrivateKey

    /// A new key.
    public init() { key = Curve25519.Signing.PrivateKey() }

    /// Reads a key as `openssl genpkey -algorithm ed25519` writes it (PEM, RFC 8410), or its 32 bytes in Base64.
    ///
    /// - Parameter text: the content of a file; nil for anything else.
    public init?(_ text: String) {
        guard let bytes = KeyFile.bytes(text, label: "PRIVATE KEY", prefix: KeyFile.privatePrefix),
            let key = try? Curve25519.Signing.PrivateKey(rawRepresentation: bytes)
        else { return nil }
        self.key = key
    }

    /// The key that verifies what this one signs.
    public var publicKey: PackageKey { PackageKey(bytes: Array(key.publicKey.rawRepresentation))! }

    func signature(for message: [UInt8]) throws -> [UInt8] { Array(try key.signature(for: message)) }
}

/// Files with one key.
private enum KeyFile {
    // SEQUENCE { SEQUENCE { OID 1.3.101.112 }, BIT STRING … }, and the same in a PrivateKeyInfo.
    static let publicPrefix: [UInt8] = [0x30, 0x2A, 0x30, 0x05, 0x06, 0x03, 0x2B, 0x65, 0x70, 0x03, 0x21, 0x00]
    static let privatePrefix: [UInt8] = [
        0x30, 0x2E, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2B, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
    ]

    static func bytes(_ text: String, label: String, prefix: [UInt8]) -> [UInt8]? {
        var lines = text.split { $0.isNewline }.map { $0.trimming { $0.isWhitespace } }.filter { !$0.isEmpty }
        let isPEM = lines.first == "-----BEGIN \(label)-----"
        if isPEM {
            guard lines.last == "-----END \(label)-----" else { return nil }
            lines = Array(lines.dropFirst().dropLast())
        }
        guard let data = Data(base64Encoded: lines.joined()) else { return nil }
        let bytes = Array(data)
        if !isPEM { return bytes.count == 32 ? bytes : nil }
        guard bytes.starts(with: prefix), bytes.count == prefix.count + 32 else { return nil }
        return Array(bytes.dropFirst(prefix.count))
    }
}

extension Substring {
    fileprivate func trimming(_ isSurplus: (Character) -> Bool) -> String {
        String(drop(while: isSurplus).reversed().drop(while: isSurplus).reversed())
    }
}
