/// `delta-seconds`: a non-negative number of seconds (RFC 9111 section 1.2.2).
enum DeltaSeconds {
    /// The greatest value kept. The section asks for 2^31 or the greatest positive integer that can conveniently be
    /// represented when a value or a calculation with it overflows; 2^42 seconds are 139,000 years and leave room for
    /// milliseconds.
    static let maximum: Int64 = 1 << 42

    /// Parses digits only: a sign, a fraction, white space or nothing is nil; leading zeros count nothing; huge
    /// values give ``maximum``.
    static func parse(_ bytes: some Sequence<UInt8>) -> Int64? { FieldBytes.number(bytes, ceiling: maximum) }
}
