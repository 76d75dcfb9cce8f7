/// Frames of HTTP/2 (RFC 9113 section 4), written by hand: an attacker keeps no rules that a library keeps.
enum HTTP2Frames {
    /// The preface and SETTINGS with an initial window for streams.
    static func preface(window: UInt32) -> [UInt8] {
        Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)
            + frame(4, flags: 0, stream: 0, [0, 4] + bytes(window))
    }

    static let settingsAcknowledged = frame(4, flags: 1, stream: 0, [])

    /// HEADERS of a GET that ends its stream, with no use of HPACK's tables (RFC 7541 section 6.2.2).
    static func get(_ path: String, stream: UInt32) -> [UInt8] {
        // :method GET, :scheme https, :path, :authority; names by their place in the static table.
        frame(1, flags: 5, stream: stream, [0x82, 0x87, 0x04] + text(path) + [0x01] + text("example.org"))
    }

    static func reset(stream: UInt32) -> [UInt8] { frame(3, flags: 0, stream: stream, bytes(8)) }

    private static func text(_ value: String) -> [UInt8] { [UInt8(value.utf8.count)] + value.utf8 }

    private static func frame(_ type: UInt8, flags: UInt8, stream: UInt32, _ payload: [UInt8]) -> [UInt8] {
        Array(bytes(UInt32(payload.count)).dropFirst()) + [type, flags] + bytes(stream) + payload
    }

    private static func bytes(_ value: UInt32) -> [UInt8] {
        [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: value >> $0) }
    }
}
