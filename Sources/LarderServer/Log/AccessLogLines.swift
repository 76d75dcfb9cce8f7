import LarderHTTP

/// The lines that an event loop has not handed over yet.
struct AccessLogLines {
    private static let handOverSize = 64 << 10

    private let writer: AccessLogWriter
    private var lines: [UInt8] = []
    /// The time stamp of the second that was written last.
    private var second = Int64.min
    private var stamp: [UInt8] = []

    init(_ writer: AccessLogWriter) {
        self.writer = writer
    }

    /// - Parameter record: without `logged` only where there is no log.
    mutating func append(_ record: RequestRecord, seconds: Double, time: Int64) {
        guard let request = record.logged else { return }
        if time != second {
            second = time
            stamp = Array((writer.format == .common ? LogTime.common(time) : LogTime.iso(time)).utf8)
        }
        switch writer.format {
        case .common: common(request, record)
        case .json: json(request, record, seconds)
        }
        if lines.count >= Self.handOverSize { handOver() }
    }

    mutating func handOver() {
        guard !lines.isEmpty else { return }
        writer.write(lines)
        lines.removeAll(keepingCapacity: true)
    }

    private mutating func common(_ request: LoggedRequest, _ record: RequestRecord) {
        lines += request.client.utf8
        lines += " - - [".utf8
        lines += stamp
        lines += "] \"".utf8
        escape(request.method)
        lines.append(UInt8(ascii: " "))
        escape(request.target)
        lines.append(UInt8(ascii: " "))
        lines += request.version.utf8
        lines += "\" ".utf8
        lines += String(record.status).utf8
        lines.append(UInt8(ascii: " "))
        lines += (record.bytesSent == 0 ? "-" : String(record.bytesSent)).utf8
        lines.append(10)
    }

    private mutating func json(_ request: LoggedRequest, _ record: RequestRecord, _ seconds: Double) {
        lines += "{\"time\":\"".utf8
        lines += stamp
        lines += "\",\"client\":\"".utf8
        lines += request.client.utf8
        member("method", request.method)
        member("host", request.host)
        member("target", request.target)
        member("version", request.version)
        if !request.referer.isEmpty { member("referer", request.referer) }
        if !request.userAgent.isEmpty { member("userAgent", request.userAgent) }
        member("source", record.source?.rawValue ?? "gateway")
        lines += "\",\"status\":\(record.status),\"bytes\":\(record.bytesSent)".utf8
        lines += ",\"microseconds\":\(Int64(seconds * 1e6))".utf8
        if record.isIncomplete { lines += ",\"incomplete\":true".utf8 }
        lines += "}\n".utf8
    }

    /// Closes the member before.
    private mutating func member(_ name: String, _ value: String) {
        lines += "\",\"".utf8
        lines += name.utf8
        lines += "\":\"".utf8
        escape(value)
    }

    /// What a client sends must neither end a line nor a string, nor move a terminal's cursor. JSON's escapes serve
    /// both formats.
    private mutating func escape(_ text: String) {
        // Most texts are ASCII.
        if text.utf8.allSatisfy({ $0 < 0x80 }) { return escape(text.utf8) }
        for scalar in text.unicodeScalars {
            switch scalar.value {
            // Control characters, and what begins a line or turns the direction of writing.
            case 0x80..<0xA0, 0x061C, 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069:
                lines += "\\u".utf8
                for shift in [12, 8, 4, 0] as [UInt32] {
                    lines.append(Self.digits[Int(scalar.value >> shift & 15)])
                }
            default: escape(UTF8.encode(scalar)!)
            }
        }
    }

    private mutating func escape(_ text: some Sequence<UInt8>) {
        for byte in text {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"):
                lines.append(UInt8(ascii: "\\"))
                lines.append(byte)
            case 0..<0x20, 0x7F:
                lines += "\\u00".utf8
                lines.append(Self.digits[Int(byte >> 4)])
                lines.append(Self.digits[Int(byte & 15)])
            default:
                lines.append(byte)
            }
        }
    }

    private static let digits = Array("0123456789abcdef".utf8)
}
