import HTTPTypes
import LarderHTTP
import NIOCore

/// Field blocks of answers (RFC 7541), which need no state of the connection: literals that no table keeps, with names
/// from the static table.
extension ByteBuffer {
    /// Tells the client that no table is used: a dynamic table size update to 0 (section 6.3).
    mutating func writeHPACKTableSizeOfZero() { writeInteger(UInt8(0x20)) }

    /// `:status`.
    mutating func writeHPACKStatus(_ status: Int) {
        if let index = HPACKStaticTable.status(status) { return writeHPACKInteger(index, prefix: 7, first: 0x80) }
        writeHPACKInteger(HPACKStaticTable.status, prefix: 4, first: 0)
        writeInteger(UInt8(3))
        for divisor in [100, 10, 1] { writeInteger(UInt8(truncatingIfNeeded: 0x30 + status / divisor % 10)) }
    }

    /// A field, unless it belongs to connections (RFC 9113 section 8.2.2).
    /// - Parameter name: in letters of any case.
    mutating func writeHPACKField(_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) {
        switch HPACKStaticTable.find(name) {
        case .ofConnections: return
        // Not kept in tables by who passes it on, either: cookies are worth guessing (section 7.1.3).
        case .index(HPACKStaticTable.setCookie):
            writeHPACKInteger(HPACKStaticTable.setCookie, prefix: 4, first: 0x10)
        case .index(let index):
            writeHPACKInteger(index, prefix: 4, first: 0)
        case .none:
            writeInteger(UInt8(0))
            writeHPACKInteger(name.count, prefix: 7, first: 0)
            for byte in name { writeInteger(0x41...0x5A ~= byte ? byte | 0x20 : byte) }
        }
        writeHPACKInteger(value.count, prefix: 7, first: 0)
        writeBytes(value)
    }

    /// The lines of a block, as `FieldBlock` makes it.
    mutating func writeHPACKFields(_ block: UnsafeRawBufferPointer) {
        for line in FieldLines(block) { writeHPACKField(line.name, line.value) }
    }

    mutating func writeHPACKField(_ field: HTTPField) {
        var name = field.name.rawName
        name.withUTF8 { name in
            field.withUnsafeBytesOfValue {
                writeHPACKField(UnsafeRawBufferPointer(name), UnsafeRawBufferPointer($0))
            }
        }
    }

    /// Section 5.1.
    private mutating func writeHPACKInteger(_ number: Int, prefix: Int, first: UInt8) {
        let most = 1 << prefix - 1
        guard number >= most else { return _ = writeInteger(first | UInt8(number)) }
        writeInteger(first | UInt8(most))
        var rest = number - most
        while rest >= 128 {
            writeInteger(UInt8(rest & 127 | 128))
            rest >>= 7
        }
        writeInteger(UInt8(rest))
    }
}

/// The entries of the static table that answers use (RFC 7541 appendix A).
private enum HPACKStaticTable {
    enum Match {
        case none
        case ofConnections
        case index(Int)
    }

    static let status = 8
    static let setCookie = 55

    /// The entry of a status, value included.
    static func status(_ status: Int) -> Int? {
        switch status {
        case 200: 8
        case 204: 9
        case 206: 10
        case 304: 11
        case 400: 12
        case 404: 13
        case 500: 14
        default: nil
        }
    }

    private static let names: [(name: StaticString, match: Match)] = [
        ("accept-ranges", .index(18)), ("access-control-allow-origin", .index(20)), ("age", .index(21)),
        ("allow", .index(22)), ("cache-control", .index(24)), ("content-disposition", .index(25)),
        ("content-encoding", .index(26)), ("content-language", .index(27)), ("content-length", .index(28)),
        ("content-location", .index(29)), ("content-range", .index(30)), ("content-type", .index(31)),
        ("date", .index(33)), ("etag", .index(34)), ("expires", .index(36)), ("last-modified", .index(44)),
        ("link", .index(45)), ("location", .index(46)), ("proxy-authenticate", .index(48)), ("refresh", .index(52)),
        ("retry-after", .index(53)), ("server", .index(54)), ("set-cookie", .index(setCookie)),
        ("strict-transport-security", .index(56)), ("vary", .index(59)), ("via", .index(60)),
        ("www-authenticate", .index(61)), ("connection", .ofConnections), ("keep-alive", .ofConnections),
        ("proxy-connection", .ofConnections), ("transfer-encoding", .ofConnections), ("upgrade", .ofConnections),
    ]

    /// By the lengths of names.
    private static let table: [[(name: StaticString, match: Match)]] = (0..<32).map { length in
        names.filter { $0.name.utf8CodeUnitCount == length }
    }

    static func find(_ name: UnsafeRawBufferPointer) -> Match {
        guard name.count < table.count else { return .none }
        for entry in table[name.count] {
            var index = 0
            // A letter or a hyphen: both have the bit of lower case.
            while index < name.count, name[index] | 0x20 == entry.name.utf8Start[index] { index += 1 }
            if index == name.count { return entry.match }
        }
        return .none
    }
}
