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
    @inline(__always)
    package mutating func next() -> Line? {
        guard position < block.count, let base = block.baseAddress else { return nil }
        let start = base + position
        let end = base + block.count
        guard let colon = Self.find(UInt8(ascii: ":"), start, end) else { return nil }
        var value = colon + 1
        if value < end, value.load(as: UInt8.self) == UInt8(ascii: " ") { value += 1 }
        guard let index = Self.find(0x0D, value, end), index + 1 < end, (index + 1).load(as: UInt8.self) == 0x0A else {
            return nil
        }
        position = index + 2 - base
        return Line(
            name: UnsafeRawBufferPointer(start: start, count: colon - start),
            value: UnsafeRawBufferPointer(start: value, count: index - value),
            whole: UnsafeRawBufferPointer(start: start, count: index + 2 - start))
    }

    @inline(__always)
    private static func find(_ byte: UInt8, _ start: UnsafeRawPointer, _ end: UnsafeRawPointer) -> UnsafeRawPointer? {
        memchr(start, Int32(byte), end - start).map { UnsafeRawPointer($0) }
    }

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
