#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// The lines of a block of fields, as `FieldBlock` makes it, in place.
package struct FieldLines: Sequence, IteratorProtocol {
    /// One line; its buffers are parts of the block.
    package struct Line {
        package let name: UnsafeRawBufferPointer
        /// What follows colon and space.
        package let value: UnsafeRawBufferPointer
        /// With CR LF.
        package let whole: UnsafeRawBufferPointer

        /// - Parameter name: in lower case, with letters and hyphens only.
        package func isNamed(_ name: StaticString) -> Bool {
            guard self.name.count == name.utf8CodeUnitCount else { return false }
            for index in 0..<self.name.count where self.name[index] | 0x20 != name.utf8Start[index] { return false }
            return true
        }
    }

    private let block: UnsafeRawBufferPointer
    private var position = 0

    package init(_ block: UnsafeRawBufferPointer) { self.block = block }

    /// Nil at the end, and at what is not a line.
    package mutating func next() -> Line? {
        guard let colon = find(UInt8(ascii: ":"), from: position) else { return nil }
        let name = position..<colon
        var start = colon &+ 1
        if start < block.count, block[start] == UInt8(ascii: " ") { start &+= 1 }
        guard let index = find(0x0D, from: start), index &+ 1 < block.count, block[index &+ 1] == 0x0A else {
            return nil
        }
        defer { position = index &+ 2 }
        return Line(
            name: part(name), value: part(start..<index), whole: part(position..<(index &+ 2)))
    }

    private func find(_ byte: UInt8, from start: Int) -> Int? {
        guard start < block.count, let base = block.baseAddress,
            let found = memchr(base + start, Int32(byte), block.count &- start)
        else { return nil }
        return UnsafeRawPointer(found) - base
    }

    private func part(_ range: Range<Int>) -> UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: block[range]) }

    /// The value of the first line with a name, and how many lines have it.
    static func find(_ name: StaticString, in block: UnsafeRawBufferPointer) -> (UnsafeRawBufferPointer?, count: Int) {
        var first: UnsafeRawBufferPointer?
        var count = 0
        for line in FieldLines(block) where line.isNamed(name) {
            if count == 0 { first = line.value }
            count += 1
        }
        return (first, count)
    }
}
