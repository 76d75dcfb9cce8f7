import Larder

/// What keeps a cache from using its store. The cache works without it: it asks the origin and stores nothing.
public struct StoreTrouble: Sendable, Hashable, CustomStringConvertible {
    /// What the cache wanted of the store.
    public enum Work: String, Sendable, Hashable, CaseIterable {
        /// Looking up responses.
        case read
        /// Storing, freshening or removing them.
        case write
        /// What the store does by itself, such as commits and displacement: `Statistics.failures`.
        case upkeep
        /// Having its directory under its path.
        case place
    }

    /// What failed.
    public var work: Work
    /// The code of the latest error; nil for an error that is not the store's.
    public var code: LarderError.Code?
    /// The latest error in words.
    public var message: String
    /// Failures since the last success, at least 1.
    public var count: Int

    /// Whether opening the store again can help: its directory was removed or replaced, its index is damaged, or it
    /// says so.
    public var wantsReopening: Bool {
        if work == .place { return true }
        return code == .mustReopen || code == .corruption || code == .formatMismatch
    }

    /// Work and message.
    public var description: String { "\(work.rawValue): \(message)" }
}
