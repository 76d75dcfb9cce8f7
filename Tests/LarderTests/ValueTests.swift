import TestSupport
import Testing

@testable import Larder

@Suite struct ValueTests {
    @Test(
        arguments: [
            ("0", 0), ("512", 512), ("64k", 65_536), ("64K", 65_536), ("1 KB", 1000), ("1KiB", 1024),
            ("10GB", 10_000_000_000),
            ("1.5 GiB", 1_610_612_736), ("100MB", 100_000_000), ("2T", 2_199_023_255_552), ("1b", 1), ("  7", 7),
            ("9007199254740993", 9_007_199_254_740_993),
        ] as [(String, Int64)])
    func sizesAreRead(_ text: String, _ bytes: Int64) { #expect(ByteCount(parsing: text)?.bytes == bytes) }

    @Test(arguments: ["", "k", "-1", "1.", ".5", "1x", "1 KBs", "1e3", "nan", "9999999999999T", "1 2", "٣"])
    func whatIsNoSizeIsNotRead(_ text: String) { #expect(ByteCount(parsing: text) == nil) }

    @Test(
        arguments: [
            (0, "0 B"), (999, "999 B"), (1000, "1 KB"), (1500, "1.5 KB"), (999_949, "999.9 KB"), (999_950, "1 MB"),
            (10_000_000_000, "10 GB"), (Int64.max, "9.2 EB"),
        ] as [(Int64, String)])
    func sizesAreWritten(_ bytes: Int64, _ text: String) { #expect(ByteCount(bytes).description == text) }

    @Test func sizesDoNotOverflow() {
        #expect(ByteCount(-5 as Int64) == .zero)
        #expect(ByteCount.gibibytes(.max) == .unlimited)
        #expect(ByteCount.kibibytes(1) < .mebibytes(1))
    }

    @Test func momentsAddWithoutOverflow() {
        let start = Timestamp(microseconds: 5)
        #expect(start + .seconds(1) == Timestamp(microseconds: 1_000_005))
        #expect(start - .microseconds(10) == Timestamp(microseconds: -5))
        #expect(start + .seconds(Int64.max) == .distantFuture)
        #expect(Timestamp.distantFuture + .seconds(1) == .distantFuture)
        #expect(Timestamp(microseconds: .min) - .seconds(1) == Timestamp(microseconds: .min))
        #expect(Timestamp(microseconds: 10) - Timestamp(microseconds: 3) == .microseconds(7))
        #expect(Timestamp(seconds: 1.5).microseconds == 1_500_000)
    }

    /// What no moment is must not select every entry, nor keep one without end.
    @Test func whatIsNoMomentIsTheEarliest() throws {
        let earliest = Timestamp(microseconds: .min)
        #expect(Timestamp(seconds: .nan) == earliest)
        #expect(Timestamp(seconds: -.infinity) == earliest)
        #expect(Timestamp(seconds: .infinity) == .distantFuture)
        #expect(Timestamp(seconds: -1e300) < Timestamp(seconds: -1e12))
        try withStore { store in
            try store.put([1], for: "k")
            for seconds in [Double.nan, -.infinity] {
                try #expect(store.remove(.storedBefore(Timestamp(seconds: seconds))) == 0)
                try #expect(store.remove(.unusedSince(Timestamp(seconds: seconds))) == 0)
            }
            try #expect(store.keys() == ["k"])
        }
    }

    @Test(
        arguments: [
            (0, "1970-01-01T00:00:00Z"), (-1, "1969-12-31T23:59:59Z"), (1_767_225_600_000_000, "2026-01-01T00:00:00Z"),
            (Int64.max, "never"),
        ] as [(Int64, String)])
    func momentsAreWritten(_ microseconds: Int64, _ text: String) {
        #expect(Timestamp(microseconds: microseconds).description == text)
    }

    @Test func digestsAreReadAndWritten() {
        let hex = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        let digest = Digest.of(Array("abc".utf8))
        #expect(digest.hexadecimal == hex)
        #expect(Digest(hexadecimal: hex) == digest)
        #expect(Digest(hexadecimal: hex.uppercased()) == digest)
        #expect(Digest(bytes: digest.bytes) == digest)
        #expect(Digest(hexadecimal: String(hex.dropLast())) == nil)
        #expect(Digest(hexadecimal: hex + "00") == nil)
        #expect(Digest(hexadecimal: "g" + hex.dropFirst()) == nil)
        #expect(Digest(bytes: [1, 2, 3]) == nil)
    }
}
