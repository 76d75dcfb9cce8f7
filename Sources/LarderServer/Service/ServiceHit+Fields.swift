import NIOCore

extension ServiceHit {
    /// How many bytes `writeFields` writes, or a few more.
    /// - Parameter date: the line of `Date`, where no cache answers.
    func fieldsLength(date: [UInt8]?) -> Int {
        // Three numbers of up to 20 bytes, and the names around them.
        fields.count + (date?.count ?? 0) + (cached?.fields.count ?? 0) + 100
    }

    /// Writes all fields, each with CR LF.
    func writeFields(date: [UInt8]?, into output: inout RawWriter) {
        output.write(fields)
        if let length = missingLength {
            output.write("Content-Length: ")
            output.writeDecimal(length)
            output.write("\r\n")
        }
        if let date { output.write(date) }
        guard let cached else { return }
        output.write("Age: ")
        output.writeDecimal(cached.ageSeconds)
        // Via and the name in Cache-Status are the same each time.
        output.write(cached.fields)
        output.writeDecimal(cached.freshSeconds)
        output.write("\r\n")
    }
}

/// Writes one thing after the other into memory that has room for all of them. `ByteBuffer` looks at each write whether
/// its memory has room and no other owner.
struct RawWriter: ~Copyable {
    private let memory: UnsafeMutableRawBufferPointer
    private(set) var count = 0

    fileprivate init(_ memory: UnsafeMutableRawBufferPointer) { self.memory = memory }

    @inline(__always)
    mutating func write(_ bytes: UnsafeRawBufferPointer) {
        precondition(bytes.count <= memory.count - count)
        guard let source = bytes.baseAddress, let start = memory.baseAddress else { return }
        (start + count).copyMemory(from: source, byteCount: bytes.count)
        count += bytes.count
    }

    @inline(__always)
    mutating func write(_ bytes: [UInt8]) {
        bytes.withUnsafeBytes { write($0) }
    }

    @inline(__always)
    mutating func write(_ text: StaticString) {
        write(UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    /// Writes a number in decimal digits.
    mutating func writeDecimal(_ number: Int64) {
        if number >= 0, number < 10 {
            precondition(count < memory.count)
            memory[count] = UInt8(number) + 0x30
            count += 1
            return
        }
        withUnsafeTemporaryAllocation(byteCount: 20, alignment: 1) { digits in
            var rest = number.magnitude
            var start = 20
            repeat {
                start -= 1
                digits[start] = UInt8(rest % 10) + 0x30
                rest /= 10
            } while rest > 0
            if number < 0 {
                start -= 1
                digits[start] = UInt8(ascii: "-")
            }
            write(UnsafeRawBufferPointer(rebasing: digits[start...]))
        }
    }
}

extension ByteBuffer {
    /// Appends what `body` writes.
    /// - Parameter count: no less than that, in bytes.
    @inline(__always)
    mutating func writeRaw(roomFor count: Int, _ body: (inout RawWriter) -> Void) {
        writeWithUnsafeMutableBytes(minimumWritableBytes: count) { memory in
            var writer = RawWriter(UnsafeMutableRawBufferPointer(rebasing: memory[..<count]))
            body(&writer)
            return writer.count
        }
    }
}
