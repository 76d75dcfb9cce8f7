import HTTPScenarios
import Testing

@testable import HTTPCaching

/// RFC 9110 section 5.6.7 and RFC 9111 section 4.2.
struct HTTPDateTests {
    static let now = Instant(seconds: 1_700_000_000)

    @Test(arguments: [
        ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777), ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777),
        ("Sun Nov  6 08:49:37 1994", 784_111_777), ("Sun Nov 16 08:49:37 1994", 784_975_777),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0), ("Wed, 31 Dec 1969 23:59:59 GMT", -1),
        ("Tue, 29 Feb 2000 12:00:00 GMT", 951_825_600),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 253_402_300_799), ("sat, 31 DEC 2016 23:59:60 gmt", 1_483_228_800),
        // The day of the week has to be one, not the right one.
        ("Mon, 06 Nov 1994 08:49:37 GMT", 784_111_777),
        // More than 50 years ahead of 2023 means the past century.
        ("Wednesday, 01-Jan-70 00:00:00 GMT", 3_155_760_000), ("Saturday, 01-Jan-77 00:00:00 GMT", 220_924_800),
    ])
    func validDates(text: String, seconds: Int64) {
        #expect(HTTPDate.parse(Array(text.utf8), now: Self.now) == Instant(seconds: seconds))
    }

    @Test(arguments: [
        "", "0", "-1", "now", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 UTC",
        "Sun, 06 Nov 1994 08:49:37 +0000",
        "Sun, 6 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 94 08:49:37 GMT", "Sun 06 Nov 1994 08:49:37 GMT",
        "Sun, 06-Nov-1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 8:49:37 GMT", "Sun, 06 Nov 1994 08.49.37 GMT", "Sun, 06 Nov 1994 24:00:00 GMT",
        "Sun, 06 Nov 1994 08:60:00 GMT",
        "Sun, 06 Nov 1994 08:00:61 GMT", "Sun, 31 Feb 1994 08:49:37 GMT", "Sun, 00 Nov 1994 08:49:37 GMT",
        "Sun, 29 Feb 1900 08:49:37 GMT",
        "Xxx, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Xxx 1994 08:49:37 GMT", "Sunday, 06 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37 GMT ",
        " Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMTX", "Sun, 06  Nov 1994 08:49:37 GMT",
        "Sun Nov 6 08:49:37 1994",
        "Sun Nov 06 08:49:37 94  ", "Sun, +6 Nov 1994 08:49:37 GMT", "1994-11-06T08:49:37Z", "784111777",
        "Sunday, 06-Nov-94 08:49:37 PST", "Funday, 06-Nov-94 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37 GMT, Sun, 06 Nov 1994 08:49:37 GMT",
    ])
    func invalidDates(text: String) { #expect(HTTPDate.parse(Array(text.utf8), now: Self.now) == nil) }

    @Test func formattingAndParsingAreInverse() {
        var seconds: Int64 = -62_167_219_200
        while seconds < 253_402_300_800 {
            let text = HTTPDate.format(Instant(seconds: seconds))
            #expect(HTTPDate.parse(Array(text.utf8), now: Self.now) == Instant(seconds: seconds), "\(text)")
            seconds += 86_400 * 37 + 3_661
        }
        #expect(HTTPDate.format(Instant(seconds: 784_111_777)) == "Sun, 06 Nov 1994 08:49:37 GMT")
        #expect(HTTPDate.format(Instant(milliseconds: -1)) == "Wed, 31 Dec 1969 23:59:59 GMT")
        #expect(HTTPDate.format(Instant(milliseconds: .max)).hasSuffix("9999 23:59:59 GMT"))
        #expect(HTTPDate.format(Instant(milliseconds: .min)).contains(" 0000 "))
    }
}
