import Larder

/// Metadata of a response that belongs to a package. Readers see it only once the whole package is committed.
///
/// A byte of kind, 5, one of version, 1, one of role, one of flags, the length of the row's key as u16 with the least
/// significant byte first, that key, and then the entry's other metadata. The *row* is an entry without a body whose
/// metadata is ``installed`` once the package is installed: writing it makes all members visible.
///
/// While a package is installed, a member whose key was free is stored under it as ``Role/added``. If there is a
/// response already, that stays in its place, as ``Role/replaced``, and the member is stored under a separate key
/// (``shadowKey(of:)``).
package struct StoredMember: Sendable, Hashable {
    /// The role of the entry in the package.
    package enum Role: UInt8, Sendable {
        /// A member: it counts once the row is ``installed``.
        case added = 0
        /// A response that a member replaces: it counts until the row is ``installed``.
        case replaced = 1
        /// A response that the package removes: it counts until the row is ``installed``.
        case leaving = 2
    }

    package static let kind: UInt8 = 5
    package static let version: UInt8 = 1
    private static let rowKind: UInt8 = 6
    private static let headLength = 6

    /// The metadata of a row whose members count.
    package static let installed: [UInt8] = [rowKind, 1, 1]
    /// The metadata of a row whose members do not count yet.
    package static let staging: [UInt8] = [rowKind, 1, 0]

    package var role: Role
    /// True if the entry has the tag of the package only during the installation.
    package var hasBorrowedTag: Bool
    /// The key of the row.
    package var row: Key
    /// The entry's other metadata.
    package var inner: [UInt8]

    package init(_ role: Role, hasBorrowedTag: Bool = false, row: Key, inner: [UInt8]) {
        self.role = role
        self.hasBorrowedTag = hasBorrowedTag
        self.row = row
        self.inner = inner
    }

    /// Reads an encoding; nil for any other bytes.
    package init?(_ bytes: [UInt8]) {
        guard bytes.count >= Self.headLength, bytes[0] == Self.kind, bytes[1] == Self.version,
            let role = Role(rawValue: bytes[2])
        else { return nil }
        let end = Self.headLength + Int(bytes.littleEndian(at: 4) as UInt16)
        guard end > Self.headLength, end <= bytes.count else { return nil }
        self.role = role
        hasBorrowedTag = bytes[3] & 1 != 0
        row = Key(bytes: Array(bytes[Self.headLength..<end]))
        inner = Array(bytes[end...])
    }

    /// The encoding.
    package var encoded: [UInt8] {
        var bytes = [Self.kind, Self.version, role.rawValue, hasBorrowedTag ? 1 : 0]
        bytes.append(littleEndian: UInt16(clamping: row.bytes.count))
        return bytes + row.bytes + inner
    }

    /// The metadata of a response, whether or not it is that of a member.
    package static func unwrapped(_ metadata: [UInt8]) -> [UInt8] {
        // A member of one package may be what another one replaces.
        var metadata = metadata
        while metadata.first == kind, let member = Self(metadata) { metadata = member.inner }
        return metadata
    }

    /// New metadata of a response in place of others: a member stays one.
    package static func rewrapped(_ metadata: [UInt8], around inner: [UInt8]) -> [UInt8] {
        guard metadata.first == kind, var member = Self(metadata) else { return inner }
        member.inner = rewrapped(member.inner, around: inner)
        return member.encoded
    }

    /// True if the members of a row count.
    package static func isInstalled(_ row: Entry?) -> Bool { row?.metadata == installed }

    static let separator = " package="

    /// The key of a member until it replaces the response under `key`. No URI has a space.
    package func shadowKey(of key: Key) -> Key {
        Key(bytes: key.bytes + Array(Self.separator.utf8) + (row.bytes.split(separator: 0x20).last ?? []))
    }

    /// The key of the response that a member will replace; nil for a key that is not one of ``shadowKey(of:)``.
    package static func key(besideWhich shadow: Key) -> Key? {
        let mark = Array(separator.utf8)
        // From the end: what is in front is a URL, which has no space, or what a key policy made of one.
        guard let space = shadow.bytes.lastIndex(of: 0x20), shadow.bytes[space...].starts(with: mark) else {
            return nil
        }
        return Key(bytes: Array(shadow.bytes[..<space]))
    }
}
