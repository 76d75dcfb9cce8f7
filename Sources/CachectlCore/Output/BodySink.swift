/// A body on its way to standard output. Bytes that are not text stay away from a terminal, whose settings they could change,
/// unless they are asked for with `-o -`.
package struct BodySink {
    private let isGuarded: Bool
    private var isFirst = true

    /// - Parameter isForced: `-o -` was given.
    package init(isForced: Bool) { isGuarded = Output.isTerminal && !isForced }

    /// Writes the next piece. Throws `usage` if the first one is not text and a person is looking.
    package mutating func write(_ bytes: UnsafeRawBufferPointer) throws {
        if isFirst, isGuarded, !Self.isText(bytes) {
            throw CommandError(
                .usage, "the body is not text and could change your terminal: '-o FILE' writes a file, '-o -' insists")
        }
        isFirst = false
        try Output.write(bytes)
    }

    /// False for a piece with control characters other than those of texts, or whose beginning is not UTF-8.
    static func isText(_ bytes: UnsafeRawBufferPointer) -> Bool {
        let head = UnsafeRawBufferPointer(rebasing: bytes.prefix(4_096))
        let isPlain = head.allSatisfy { $0 >= 0x20 && $0 != 0x7F || (0x08...0x0D).contains($0) }
        if !isPlain { return false }
        // The cut may run through a character, of at most four bytes.
        let cuts = head.count == bytes.count ? 0...0 : 0...min(3, head.count)
        return cuts.contains { String(validating: head.dropLast($0), as: UTF8.self) != nil }
    }
}
