import Larder
import LarderHTTP

/// `stat KEY --json`, `ls --json`, `get --json`.
package struct EntryJSON: Encodable {
    let key: String
    @Nullable var keyHex: String?
    let digest: String
    let length: Int64
    let storedLength: Int64
    let encoding: String
    let isInline: Bool
    @Nullable var references: Int?
    let created: String
    let stored: String
    let lastAccess: String
    @Nullable var expires: String?
    let isExpired: Bool
    let hitCount: Int
    let policy: String
    let isPinned: Bool
    /// Null in `ls`, which does not look them up.
    @Nullable var leases: [LeaseJSON]?
    let tags: [String]
    /// The application version; null: none.
    @Nullable var applicationVersion: String?
    let metadataLength: Int
    let metadataBase64: String
    /// The response, if an HTTP cache stored the entry; else null.
    @Nullable var response: ResponseJSON?
    /// The number of variants, if the entry is the list of a URL's variants; else null.
    @Nullable var variantCount: Int?

    package init(_ entry: Attributes, _ versions: VersionNames, now: Timestamp = .now) {
        key = entry.key.text
        // The text of a key that is not printable has escapes; this has its bytes.
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
        policy = "\(entry.storagePolicy)"
        isPinned = entry.isPinned
        leases = entry.leases.map { $0.map(LeaseJSON.init) }
        tags = entry.tags
        applicationVersion = versions[entry.version]
        metadataLength = entry.metadata.count
        metadataBase64 = JSON.base64(entry.metadata)
        response = ResponseSummary(entry, now: now).map(ResponseJSON.init)
        variantCount = VariantList(entry)?.keys.count
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

/// A lease on an entry.
struct LeaseJSON: Encodable {
    /// `key`, `tag` or `content`.
    let subject: String
    @Nullable var tag: String?
    let expires: String
    /// `process`, `endedProcess`, or `timeOnly` for none.
    let holder: String

    init(_ lease: ActiveLease) {
        switch lease.subject {
        case .key: subject = "key"
        case .tag(let name):
            subject = "tag"
            tag = name
        case .content: subject = "content"
        }
        expires = lease.expires.description
        holder = "\(lease.holder)"
    }
}

/// The response in an entry.
struct ResponseJSON: Encodable {
    let url: String
    let variant: [String]
    let status: Int
    let ageSeconds: Int64
    let freshSeconds: Int64
    let needsValidation: Bool
    @Nullable var entityTag: String?
    @Nullable var lastModified: String?
    let isComplete: Bool
    @Nullable var totalBytes: Int64?
    /// Of an incomplete response: its first and last stored byte, for each range.
    @Nullable var storedRanges: [[Int64]]?
    let groups: [String]
    let fields: [[String]]

    package init(_ response: ResponseSummary) {
        url = response.url
        variant = response.variant
        status = response.status
        ageSeconds = response.ageSeconds
        freshSeconds = response.freshSeconds
        needsValidation = response.needsValidation
        entityTag = response.entityTag
        lastModified = response.lastModified
        isComplete = response.isComplete
        totalBytes = response.totalBytes
        storedRanges = response.storedRanges?.map { [$0.lowerBound, $0.upperBound - 1] }
        groups = response.groups
        fields = response.fields.map { [$0.name.rawName, $0.value] }
    }
}
