import HTTPCaching
import HTTPTypes

/// What is kept in an entry's metadata, next to the body: a stored response without its content.
///
/// | offset | type | field |
/// |---|---|---|
/// | 0 | u8 | kind, 1 |
/// | 1 | u8 | version, 1 |
/// | 2 | u16 | status |
/// | 4 | u8 | flags: 1 invalidated, 2 complete, 4 has `Age`, 8 has `Content-Length`, 16 has parts |
/// | 5 | u8 | length of the method, 0 for GET |
/// | 6 | u16 | number of stored ranges, 0 for a complete body |
/// | 8 | u32 | length of the selecting fields |
/// | 12 | u32 | length of the header fields |
/// | 16 | i64 | request time, ms since 1970 |
/// | 24 | i64 | response time, ms since 1970 |
/// | 32 | i64 | length of the whole representation, -1 unknown |
/// | 40 | 64 bytes | `StoredPolicy` |
/// | 104 | | method, ranges (2 x i64 each), selecting fields, header fields, parts (`StoredPart`) |
///
/// Numbers have the least significant byte first. Header fields have the form that they have on an HTTP/1.1 connection,
/// so that a hit can be sent without taking them apart: `name: value` and CR LF for each.
struct StoredRecord: Hashable {
    /// The response as the rules see it, with those bytes that are in its own entry.
    var response: StoredResponse
    /// Entries that hold more bytes of it; none for a complete response.
    var parts: [StoredPart]

    static let kind: UInt8 = 1
    static let version: UInt8 = 1
    static let fixedLength = 40 + StoredPolicy.encodedByteCount

    private enum Flag {
        static let invalidated: UInt8 = 1
        static let complete: UInt8 = 2
        static let age: UInt8 = 4
        static let contentLength: UInt8 = 8
        static let parts: UInt8 = 16
        static let revised: UInt8 = 32
    }

    /// The encoding of a member of a package of which the origin has said something since it was installed.
    static func revised(_ response: StoredResponse) -> [UInt8] {
        var bytes = StoredRecord(response).encoded
        bytes[4] |= Flag.revised
        return bytes
    }

    /// True for an encoding of ``revised(_:)``.
    static func isRevised(_ bytes: [UInt8]) -> Bool {
        bytes.withUnsafeBytes { Layout($0).map { $0.flags & Flag.revised != 0 } ?? false }
    }

    init(_ response: StoredResponse, parts: [StoredPart] = []) {
        self.response = response
        self.parts = response.body.isComplete ? [] : parts
    }

    /// The encoding.
    var encoded: [UInt8] {
        let fields = FieldBlock.encode(response.head.headerFields)
        let selecting = response.selecting.encoded
        let method = response.method == .get ? [] : Array(response.method.rawValue.utf8.prefix(255))
        var ranges: [Range<Int64>] = []
        var flags: UInt8 = response.isInvalidated ? Flag.invalidated : 0
        if !parts.isEmpty { flags |= Flag.parts }
        if response.head.headerFields.contains(.age) { flags |= Flag.age }
        if response.head.headerFields.contains(.contentLength) { flags |= Flag.contentLength }
        var total: Int64 = -1
        switch response.body {
        case .complete(let length):
            flags |= Flag.complete
            total = length
        case .partial(let available, let known):
            ranges = Array(available.ranges.prefix(Int(UInt16.max)))
            total = known ?? -1
        }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Self.fixedLength + selecting.count + fields.count + 16 * ranges.count + method.count)
        bytes += [Self.kind, Self.version]
        bytes.append(littleEndian: UInt16(clamping: response.head.status.code))
        bytes.append(flags)
        bytes.append(UInt8(method.count))
        bytes.append(littleEndian: UInt16(ranges.count))
        bytes.append(littleEndian: UInt32(clamping: selecting.count))
        bytes.append(littleEndian: UInt32(clamping: fields.count))
        bytes.append(littleEndian: response.requestTime.milliseconds)
        bytes.append(littleEndian: response.responseTime.milliseconds)
        bytes.append(littleEndian: total)
        bytes += response.policy.encoded
        bytes += method
        for range in ranges {
            bytes.append(littleEndian: range.lowerBound)
            bytes.append(littleEndian: range.upperBound)
        }
        bytes += selecting
        bytes += fields
        bytes += StoredPart.encode(parts)
        return bytes
    }

    /// Reads an encoding; nil when the bytes are anything else.
    init?(_ bytes: [UInt8]) {
        guard let layout = bytes.withUnsafeBytes({ Layout($0) }) else { return nil }
        let statusCode = layout.status
        guard (100...999).contains(statusCode),
            let policy = StoredPolicy(encoded: Array(bytes[40..<Self.fixedLength])),
            let selecting = SelectingFields(encoded: Array(bytes[layout.selecting])),
            let fields = FieldBlock.decode(bytes[layout.fields])
        else { return nil }
        var method = HTTPRequest.Method.get
        if !layout.method.isEmpty {
            guard let given = HTTPRequest.Method(String(decoding: bytes[layout.method], as: UTF8.self)) else {
                return nil
            }
            method = given
        }
        let body: BodyExtent
        if layout.flags & Flag.complete != 0 {
            guard layout.total >= 0 else { return nil }
            body = .complete(length: layout.total)
        } else {
            guard let available = ByteRanges(encoded: bytes, in: layout.ranges) else { return nil }
            let end = available.ranges.last?.upperBound ?? 0
            guard layout.total < 0 || end <= layout.total else { return nil }
            body = .partial(available, total: layout.total < 0 ? nil : layout.total)
        }
        response = StoredResponse(
            head: HTTPResponse(status: HTTPResponse.Status(code: statusCode).withReason, headerFields: fields),
            method: method,
            selecting: selecting, requestTime: Instant(milliseconds: bytes.littleEndian(at: 16)),
            responseTime: Instant(milliseconds: bytes.littleEndian(at: 24)), body: body, policy: policy,
            isInvalidated: layout.flags & Flag.invalidated != 0)
        parts = []
        guard layout.flags & Flag.parts != 0 else { return }
        guard !body.isComplete, let listed = StoredPart.decode(Array(bytes[layout.parts])),
            layout.total < 0 || listed.allSatisfy({ $0.ranges.ranges.last?.upperBound ?? 0 <= layout.total })
        else { return nil }
        parts = listed
    }

    /// Where the parts of an encoding are.
    struct Layout {
        let status: Int
        let flags: UInt8
        let total: Int64
        let method: Range<Int>
        let ranges: Range<Int>
        let selecting: Range<Int>
        let fields: Range<Int>
        let parts: Range<Int>

        /// Whether the response can be sent unchanged to every client that selects it: complete, not invalidated, for
        /// GET, and with an `Age` still to be added.
        var isPlain: Bool {
            flags & ~(Flag.contentLength | Flag.revised) == Flag.complete && method.isEmpty
        }
        /// Whether the same is true but for the body, of which there are parts.
        var isPlainInParts: Bool { flags & ~Flag.contentLength == Flag.parts && method.isEmpty }
        var hasContentLength: Bool { flags & Flag.contentLength != 0 }

        /// Nil unless the lengths add up.
        init?(_ bytes: UnsafeRawBufferPointer) {
            guard bytes.count >= StoredRecord.fixedLength, bytes[0] == StoredRecord.kind,
                bytes[1] == StoredRecord.version
            else { return nil }
            status = Int(UInt16(littleEndian: bytes.loadUnaligned(fromByteOffset: 2, as: UInt16.self)))
            flags = bytes[4]
            total = Int64(littleEndian: bytes.loadUnaligned(fromByteOffset: 32, as: Int64.self))
            let methodEnd = StoredRecord.fixedLength + Int(bytes[5])
            let rangesEnd =
                methodEnd + 16 * Int(UInt16(littleEndian: bytes.loadUnaligned(fromByteOffset: 6, as: UInt16.self)))
            let selectingEnd =
                rangesEnd + Int(UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt32.self)))
            let end =
                selectingEnd + Int(UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: 12, as: UInt32.self)))
            guard flags & Flag.parts == 0 ? end == bytes.count : end < bytes.count else { return nil }
            method = StoredRecord.fixedLength..<methodEnd
            ranges = methodEnd..<rangesEnd
            selecting = rangesEnd..<selectingEnd
            fields = selectingEnd..<end
            parts = end..<bytes.count
        }
    }
}

extension [UInt8] {
    mutating func append<T: FixedWidthInteger>(littleEndian value: T) {
        Swift.withUnsafeBytes(of: value.littleEndian) { append(contentsOf: $0) }
    }

    /// The number at an offset that is known to be inside.
    func littleEndian<T: FixedWidthInteger>(at offset: Int) -> T {
        withUnsafeBytes { T(littleEndian: $0.loadUnaligned(fromByteOffset: offset, as: T.self)) }
    }
}
