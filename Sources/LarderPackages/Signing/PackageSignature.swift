import Larder

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The member that signs a package: a line of JSON.
struct PackageSignature: Codable {
    var algorithm = "Ed25519"
    /// The public key, in Base64.
    var key: String
    /// The signature, in Base64.
    var signature: String

    /// The signed text, with the SHA-256 of the list of members, which contains those of all members.
    static func message(_ list: Digest) -> [UInt8] { Array("larder.members sha256:\(list.hexadecimal)\n".utf8) }

    init(_ list: Digest, _ key: PackageSigningKey) throws {
        self.key = key.publicKey.description
        signature = Data(try key.signature(for: Self.message(list))).base64EncodedString()
    }

    /// The key, if the signature is that key's for a list; nil if it is not.
    func signer(of list: Digest) -> PackageKey? {
        guard algorithm == "Ed25519", let key = PackageKey(key), let bytes = Data(base64Encoded: signature),
            key.isValid(Array(bytes), for: Self.message(list))
        else { return nil }
        return key
    }

    var line: String {
        var text = CanonicalJSON()
        text.add("algorithm", algorithm)
        text.add("key", key)
        text.add("signature", signature)
        return text.text
    }
}
