/// A place in a data file where the structures violate LMDB's assumptions.
public struct PageDamage: Error, Sendable, Hashable, CustomStringConvertible {
    /// Number of the page; 0 and 1 are the meta pages.
    public let page: UInt64
    /// The tree the page belongs to, or was reached from.
    public let tree: String
    /// A description of the damage.
    public let what: String

    /// A place of page `page`.
    public init(page: UInt64, tree: String, what: String) {
        self.page = page
        self.tree = tree
        self.what = what
    }

    /// `page 17 (entries): ...`.
    public var description: String { "page \(page) (\(tree)): \(what)" }
}
