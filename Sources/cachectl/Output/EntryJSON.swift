import Larder

/// `stat KEY --json`, `ls --json`, `get --json`.
struct EntryJSON: Encodable {
    let key: String
    @Nullable var keyHex: String?
    let digest: String
    let length: Int64
    let storedLength: Int64
    let encoding: String
    let isInline: Bool
    let references: Int
    let created: String
    let stored: String
    let lastAccess: String
    @Nullable var expires: String?
    let isExpired: Bool
    let hitCount: Int
    let policy: String
    let isPinned: Bool
    let tags: [String]
    let metadataLength: Int
    let metadataBase64: String

    init(_ entry: Attributes, now: Timestamp = .now) {
        key = entry.key.text
        // The text of a key that is not printable is escaped; the bytes are here.
        keyHex = Array(key.utf8) == entry.key.bytes ? nil : Self.hex(entry.key.bytes)
        digest = entry.digest.hexadecimal
        length = entry.length.bytes
        storedLength = entry.storedLength.bytes
        encoding = "\(entry.encoding)"
        isInline = entry.isInline
        references = entry.references
        created = entry.created.description
        stored = entry.stored.description
        lastAccess = entry.lastAccess.description
        expires = entry.expires?.description
        isExpired = entry.expires.map { $0 <= now } ?? false
        hitCount = entry.hitCount
        policy = entry.storagePolicy.description
        isPinned = entry.isPinned
        tags = entry.tags
        metadataLength = entry.metadata.count
        metadataBase64 = JSON.base64(entry.metadata)
    }

    private static func hex(_ bytes: [UInt8]) -> String {
        let digits = Array("0123456789abcdef".unicodeScalars)
        var text = ""
        for byte in bytes {
            text.unicodeScalars.append(digits[Int(byte >> 4)])
            text.unicodeScalars.append(digits[Int(byte & 15)])
        }
        return text
    }
}
