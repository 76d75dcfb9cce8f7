/// Writes a body to standard output. Refuses to write binary data to a terminal, whose settings it could change, unless
/// the user gave `-o -`.
package struct OutputSink {
    private let isGuarded: Bool
    private var isFirst = true

    /// - Parameter isForced: `-o -` was given.
    package init(isForced: Bool) { isGuarded = Output.isTerminal && !isForced }

    /// Writes the next piece.
    /// - Throws: `usage` if the first piece is not text and standard output is a terminal.
    package mutating func write(_ bytes: UnsafeRawBufferPointer) throws {
        if isFirst, isGuarded, !Self.isText(bytes) {
            throw CommandError(
                .usage,
                "the body is binary and could disturb your terminal: use '-o FILE', or '-o -' to print it anyway"
            )
        }
        isFirst = false
        try Output.write(bytes)
    }

    /// False if the first 4,096 bytes have control characters that text does not have, or are not UTF-8.
    static func isText(_ bytes: UnsafeRawBufferPointer) -> Bool {
        let head = UnsafeRawBufferPointer(rebasing: bytes.prefix(4_096))
        let isPlain = head.allSatisfy { $0 >= 0x20 && $0 != 0x7F || (0x08...0x0D).contains($0) }
        if !isPlain { return false }
        // The cut may split a character, which has at most four bytes.
        let cuts = head.count == bytes.count ? 0...0 : 0...min(3, head.count)
        return cuts.contains { String(validating: head.dropLast($0), as: UTF8.self) != nil }
    }
}
