import NIOCore
import TestSupport
import Testing

@testable import LarderServer

/// Frames of a client, and the windows that it gives.
struct HTTP2WindowsTests {
    private static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)

    private func frames(_ bytes: [UInt8], pieces: Int) throws -> [HTTP2Frame] {
        var reader = HTTP2FrameReader()
        var frames: [HTTP2Frame] = []
        for start in stride(from: 0, to: bytes.count, by: pieces) {
            var piece = ByteBuffer(bytes: bytes[start..<min(start + pieces, bytes.count)])
            reader.keep(&piece)
            while let frame = try reader.next() {
                // Of DATA the parts come as they are there.
                if frame.kind == .data, let last = frames.last, last.kind == .data, !last.endsStream {
                    frames[frames.count - 1] = last.followed(by: frame)
                } else {
                    frames.append(frame)
                }
            }
            reader.release()
        }
        #expect(!reader.isInside)
        return frames
    }

    /// Bytes come in whatever pieces.
    @Test(arguments: [1, 2, 3, 8, 9, 10, 13, 64, 100_000]) func framesAreFoundInAnyPieces(_ pieces: Int) throws {
        let sent: [(type: UInt8, flags: UInt8, stream: Int, payload: [UInt8])] = [
            (RawHTTP2Client.settings, 0, 0, [0, 2, 0, 0, 0, 0, 0, 4, 0, 0, 0, 100]),
            (RawHTTP2Client.settings, 1, 0, []),
            (RawHTTP2Client.data, 1, 0x7FFF_FFFF, [UInt8](repeating: 8, count: 16_384)),
            (200, 255, 7, [UInt8](repeating: 4, count: 33)),
            (RawHTTP2Client.ping, 0, 0, [0, 0, 4, 8, 0, 0, 0, 1]),
        ]
        let bytes = sent.flatMap { RawHTTP2Client.frame($0.type, $0.flags, $0.stream, $0.payload) }
        let frames = try frames(Self.preface + bytes, pieces: pieces)
        #expect(frames.count == sent.count)
        for (frame, sent) in zip(frames, sent) {
            #expect(frame.kind?.rawValue == (sent.type == 200 ? nil : sent.type))
            #expect(frame.flags == sent.flags && frame.stream == sent.stream)
            #expect(Array(frame.payload.readableBytesView) == sent.payload)
        }
    }

    @Test func whatIsNotHTTP2IsAFault() {
        #expect(throws: HTTP2Fault.self) { try frames(Array("GET / HTTP/1.1\r\n\r\n".utf8), pieces: 3) }
        let long = RawHTTP2Client.frame(RawHTTP2Client.data, 0, 1, [UInt8](repeating: 0, count: 16_385))
        #expect(throws: HTTP2Fault.self) { try frames(Self.preface + long, pieces: 100_000) }
    }

    /// RFC 9113 section 6.9.2: a change of the initial window changes those of open streams, below zero too, and not
    /// that of the connection.
    @Test func theInitialWindowChangesAllStreams() throws {
        var windows = HTTP2Windows()
        windows.sent(60_000)
        var balance: Int64 = -60_000
        try windows.setInitial(0, balances: [balance])
        #expect(windows.initial + balance == -60_000)
        #expect(windows.connection == 5_535)
        try windows.grow(&balance, by: 60_001, stream: 1)
        #expect(windows.initial + balance == 1)
    }

    /// Section 6.9.1: no window may be larger than 2^31-1 bytes.
    @Test func windowsHaveABound() throws {
        var windows = HTTP2Windows()
        var balance: Int64 = 0
        try windows.grow(&balance, by: 0x7FFF_FFFF - 65_535, stream: 1)
        #expect(throws: HTTP2Fault.self) { try windows.grow(&balance, by: 1, stream: 1) }
        #expect(throws: HTTP2Fault.self) { try windows.setInitial(65_536, balances: [balance]) }
        #expect(throws: HTTP2Fault.self) { try windows.setInitial(0x8000_0000, balances: []) }
        try windows.growConnection(by: 0x7FFF_FFFF - 65_535)
        #expect(throws: HTTP2Fault.self) { try windows.growConnection(by: 1) }
    }

    @Test func bytesThatAreNoFramesDoNoHarm() {
        for seed in 0..<200 as Range<UInt8> {
            var generator = SeededGenerator(seed: UInt64(seed))
            let bytes = (0..<2_000).map { _ in
                // Short frames of the types that count come often so.
                UInt8(truncatingIfNeeded: generator.next()) & (seed % 2 == 0 ? 15 : 255)
            }
            var reader = HTTP2FrameReader()
            var buffer = ByteBuffer(bytes: Self.preface + bytes)
            reader.keep(&buffer)
            while let frame = try? reader.next() { #expect(frame.payload.readableBytes <= HTTP2Frame.longestPayload) }
        }
    }
}

extension HTTP2Frame {
    fileprivate func followed(by next: HTTP2Frame) -> HTTP2Frame {
        var payload = payload
        payload.writeImmutableBuffer(next.payload)
        return HTTP2Frame(kind: kind, flags: next.flags, stream: stream, payload: payload)
    }
}
