import Larder

/// A failure that keeps a cache from using its store. The cache works without it: it asks the origin and stores
/// nothing.
public struct StoreTrouble: Sendable, Hashable, CustomStringConvertible {
    /// The kind of work that failed.
    public enum Work: String, Sendable, Hashable, CaseIterable {
        /// Looking up responses.
        case read
        /// Storing, freshening or removing responses.
        case write
        /// Work of the store itself, such as commits and displacement: `Statistics.failures`.
        case upkeep
        /// Having its directory under its path.
        case place
    }

    /// The work that failed.
    public var work: Work
    /// The code of the latest error; nil for an error that is not the store's.
    public var code: LarderError.Code?
    /// The latest error in words.
    public var message: String
    /// Failures since the last success, at least 1.
    public var count: Int

    /// True if opening the store again can help: its directory was removed or replaced, its index is damaged, or its
    /// error code asks for it.
    public var wantsReopening: Bool {
        if work == .place { return true }
        return code == .mustReopen || code == .corruption || code == .formatMismatch
    }

    /// Work and message.
    public var description: String { "\(work.rawValue): \(message)" }
}
