import HTTPCaching
import Larder
import Locks

/// Which variant requests select, as the rules found it for those before: where a list of variants and the fields that
/// select are the same bytes, so is the answer.
final class VariantMemory: Sendable {
    /// A variant.
    struct Selected: Sendable {
        /// What its key has after the primary one.
        fileprivate let suffix: [UInt8]
        /// Its secondary key, encoded.
        let selecting: [UInt8]

        /// The key of its entry.
        func key(_ primary: Key) -> Key { Key(bytes: primary.bytes + suffix) }
    }

    private struct Known: Sendable {
        let index: [UInt8]
        let asked: [UInt8]
        let selected: Selected?
    }

    private static let count = 256
    /// Of a list and the fields, in bytes: clients must not fill memory.
    private static let longestKept = 4096
    private let rules: CacheRules
    private let known = Mutex([Known?](repeating: nil, count: VariantMemory.count))

    init(_ rules: CacheRules) { self.rules = rules }

    /// The variant that a request selects; nil if these bytes are not a list of variants, or the long way has to look
    /// for it.
    /// - Parameters:
    ///   - index: the metadata of an entry.
    ///   - values: see ``HTTPCache/withPlainHit(_:_:_:values:_:)``.
    func selected(_ index: UnsafeRawBufferPointer, _ values: (String) -> [UInt8]?) -> Selected? {
        // The long way reads long lists no slower, and keeps no secrets.
        guard index.count <= Self.longestKept, let names = VariantIndex.names(index),
            !names.contains(where: { CacheRules.isSecret($0) })
        else { return nil }
        var asked: [UInt8] = []
        for name in names {
            // No value has a line feed.
            asked.append(UInt8(ascii: "\n"))
            guard let value = values(name) else { continue }
            asked.append(UInt8(ascii: "="))
            asked += value
        }
        guard index.count + asked.count <= Self.longestKept else { return nil }
        var hasher = Hasher()
        hasher.combine(bytes: index)
        asked.withUnsafeBytes { hasher.combine(bytes: $0) }
        let slot = Int(UInt(bitPattern: hasher.finalize()) % UInt(Self.count))
        let hit = known.withLock { known in
            known[slot].flatMap { $0.asked == asked && index.isEqual(to: $0.index) ? $0 : nil }
        }
        if let hit { return hit.selected }
        let copy = Array(index)
        let selected = selected(copy, values)
        known.withLock { $0[slot] = Known(index: copy, asked: asked, selected: selected) }
        return selected
    }

    private func selected(_ index: [UInt8], _ values: (String) -> [UInt8]?) -> Selected? {
        guard let variants = VariantIndex(index)?.variants,
            let names = variants.first?.fields.map(\.name),
            variants.allSatisfy({ $0.fields.map(\.name) == names }),
            let variant = rules.onlyVariant(variants, values: values)
        else { return nil }
        return Selected(suffix: VariantIndex.suffix(of: variant), selecting: variant.encoded)
    }
}
