import TestSupport
import Testing

@testable import LarderServer

/// The windows as the gateway counts them.
struct HTTP2WindowsTests {
    private func windows(_ frames: [UInt8], pieces: Int, skip: Int = 0) -> HTTP2Windows {
        var windows = HTTP2Windows()
        var scanner = HTTP2FrameScanner(skip: skip)
        for start in stride(from: 0, to: frames.count, by: pieces) {
            frames[start..<min(start + pieces, frames.count)].withUnsafeBytes { bytes in
                scanner.scan(bytes) { windows.received($0) }
            }
        }
        return windows
    }

    /// Bytes come in whatever pieces.
    @Test(arguments: [1, 2, 3, 8, 9, 10, 13, 64, 100_000]) func framesAreFoundInAnyPieces(_ pieces: Int) {
        let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)
        let frames: [[UInt8]] = [
            preface,
            // ENABLE_PUSH 0, INITIAL_WINDOW_SIZE 100.
            RawHTTP2Client.frame(RawHTTP2Client.settings, 0, 0, [0, 2, 0, 0, 0, 0, 0, 4, 0, 0, 0, 100]),
            // Acknowledgements, frames of other types and unknown frames do not count.
            RawHTTP2Client.frame(RawHTTP2Client.settings, 1, 0, []),
            RawHTTP2Client.request(1), RawHTTP2Client.data(1, String(repeating: "\u{0}\u{0}\u{4}\u{8}", count: 50)),
            RawHTTP2Client.frame(200, 255, 7, [UInt8](repeating: 4, count: 33)),
            RawHTTP2Client.frame(RawHTTP2Client.ping, 0, 0, [0, 0, 4, 8, 0, 0, 0, 1]),
            RawHTTP2Client.grow(0, by: 1_000), RawHTTP2Client.grow(3, by: 7), RawHTTP2Client.grow(3, by: 1),
            // Of a wrong length: swift-nio-http2 ends the connection.
            RawHTTP2Client.frame(RawHTTP2Client.windowUpdate, 0, 5, [0, 0, 1]),
        ]
        let windows = windows(frames.flatMap { $0 }, pieces: pieces, skip: 24)
        #expect(windows.connection == 66_535)
        #expect(windows.stream(1) == 100)
        #expect(windows.stream(3) == 108)
        #expect(windows.stream(5) == 100)
    }

    /// RFC 9113 section 6.9.2: a change of the initial window changes those of open streams, below zero too.
    @Test func theInitialWindowChangesAllStreams() {
        var windows = HTTP2Windows()
        windows.sent(60_000, on: 1)
        #expect(windows.stream(1) == 5_535)
        #expect(windows.stream(3) == 65_535)
        #expect(windows.connection == 5_535)
        windows.received(.init(type: .settings, flags: 0, stream: 0, length: 6, payload: [0, 4, 0, 0, 0, 0]))
        #expect(windows.stream(1) == -60_000)
        #expect(windows.stream(3) == 0)
        #expect(windows.connection == 5_535)
        windows.forget(1)
        #expect(windows.stream(1) == 0)
    }

    @Test func bytesThatAreNoFramesDoNoHarm() {
        for seed in 0..<200 as Range<UInt8> {
            var generator = SeededGenerator(seed: UInt64(seed))
            let bytes = (0..<2_000).map { _ in
                // Short frames of the types that count come often so.
                UInt8(truncatingIfNeeded: generator.next()) & (seed % 2 == 0 ? 15 : 255)
            }
            _ = windows(bytes, pieces: 7)
        }
    }
}
