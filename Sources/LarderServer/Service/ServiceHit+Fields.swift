import NIOCore

extension ServiceHit {
    /// Writes all fields, each with CR LF.
    /// - Parameter date: the line of `Date`, where no cache answers.
    func writeFields(date: [UInt8]?, into output: inout ByteBuffer) {
        output.writeBytes(fields)
        if let length = missingLength {
            output.writeStaticString("Content-Length: ")
            output.writeDecimal(length)
            output.writeStaticString("\r\n")
        }
        if let date { output.writeBytes(date) }
        guard let cached else { return }
        output.writeStaticString("Age: ")
        output.writeDecimal(cached.ageSeconds)
        // Via and the name in Cache-Status are the same each time.
        output.writeBytes(cached.fields)
        output.writeDecimal(cached.freshSeconds)
        output.writeStaticString("\r\n")
    }
}

extension ByteBuffer {
    /// Writes a number in decimal digits.
    mutating func writeDecimal(_ number: Int64) {
        if number >= 0, number < 10 {
            writeInteger(UInt8(number) + 0x30)
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
            if number < 0 { writeInteger(UInt8(ascii: "-")) }
            writeBytes(UnsafeRawBufferPointer(rebasing: digits[start...]))
        }
    }
}
