import HTTPCaching

/// The variations that responses of a path have (`No-Vary-Search`), the latest first.
///
/// A byte of kind, 4, one of version, 1, then `URLVariation.text` of each, with a line feed between.
struct VariationList: Hashable {
    static let kind: UInt8 = 4
    static let version: UInt8 = 1
    /// The most variations of one path. Origins have one; each costs a lookup for each miss.
    static let limit = 4

    private(set) var variations: [URLVariation] = []

    init() {}

    /// Reads an encoding; nil when the bytes are anything else.
    init?(_ bytes: [UInt8]) {
        guard bytes.count >= 2, bytes[0] == Self.kind, bytes[1] == Self.version else { return nil }
        for text in String(decoding: bytes[2...], as: UTF8.self).split(separator: "\n") {
            guard let variation = URLVariation(text: text), variations.count < Self.limit else { return nil }
            variations.append(variation)
        }
    }

    /// The encoding.
    var encoded: [UInt8] {
        [Self.kind, Self.version] + variations.map(\.text).joined(separator: "\n").utf8
    }

    /// Puts a variation first; returns those that had to give way.
    mutating func insert(_ variation: URLVariation) -> [URLVariation] {
        variations.removeAll { $0 == variation }
        variations.insert(variation, at: 0)
        defer { variations = Array(variations.prefix(Self.limit)) }
        return Array(variations.dropFirst(Self.limit))
    }
}
