/// Seals the rows of an environment, so that its file says nothing to those who have no key: see
/// `Environment.sealRows(with:)`.
public protocol RowCipher: AnyObject, Sendable {
    /// Bytes by which a sealed row is longer than what it holds.
    var overhead: Int { get }

    /// Seals a row.
    /// - Parameters:
    ///   - row: what it holds.
    ///   - target: gets it; `overhead` longer than `row`.
    ///   - place: what the row is bound to: the number of its database, then its key as it is stored.
    func seal(
        _ row: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer, at place: UnsafeRawBufferPointer)

    /// Opens a row; false if it was not sealed for this place with this key, or was changed since.
    /// - Parameter target: gets what it holds; `overhead` shorter than `sealed`.
    func open(
        _ sealed: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer, at place: UnsafeRawBufferPointer
    ) -> Bool

    /// The `HiddenKey.length` bytes that stand for a name: always the same, and not to be guessed without the key.
    /// - Parameter name: the number of a database, then the name.
    func hide(_ name: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer)
}

/// Opens sealed rows outside a transaction, for code that reads pages without LMDB.
public struct RowOpener {
    private let space: RowSpace

    /// Opens rows that `cipher` sealed.
    public init(_ cipher: any RowCipher) { space = RowSpace(cipher) }

    /// The key and the value of a row, valid until 15 more are opened; nil for one that cannot be opened.
    /// - Parameters:
    ///   - number: that of its database: see `Environment.openDatabase`.
    ///   - key: as it is stored.
    ///   - value: as it is stored.
    public func open(
        _ number: UInt8, _ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer
    ) -> Cursor.Pair? {
        space.open(Database(handle: 0, number: number), key, value, in: nil)
    }
}

/// How the rows of a database are sealed.
public struct RowSealing: Sendable, Hashable {
    /// The part of its keys that is hidden.
    public var hidden = HiddenKey.none
    /// A row is filled up to a multiple of that many bytes: what is sealed tells its length no closer.
    public var granularity = 32

    /// Sealing with these settings.
    /// - Parameters:
    ///   - hidden: the part of the keys that is hidden. Default: none.
    ///   - granularity: bytes that lengths of rows are multiples of; 8 or more. Default: 32.
    public init(hidden: HiddenKey = .none, granularity: Int = 32) {
        self.hidden = hidden
        self.granularity = granularity
    }
}

/// Which part of the keys of a database is a name, and hidden where rows are sealed. Hidden keys are in no order.
public enum HiddenKey: UInt8, Sendable {
    /// Nothing: keys are numbers.
    case none
    /// The whole key.
    case whole
    /// What comes before the first zero byte.
    case tag
    /// The 32 bytes behind the first one.
    case subject

    /// Bytes of what stands for a name.
    public static let length = 16

    /// Which part of `key` is hidden; nil: none.
    func range(in key: UnsafeRawBufferPointer) -> Range<Int>? {
        switch self {
        case .none: nil
        case .whole: 0..<key.count
        case .tag: key.firstIndex(of: 0).map { 0..<$0 }
        case .subject: key.count > 32 ? 1..<33 : nil
        }
    }
}
