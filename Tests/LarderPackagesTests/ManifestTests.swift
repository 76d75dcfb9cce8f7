import Larder
import LarderPackages
import Testing

@Suite struct ManifestTests {
    /// Each form that AFCache and its tools have written, as they wrote it.
    static let fixtures = [
        // The tools' three fields.
        """
        http://a.example/x.html ; Sat, 27 Mar 2004 18:43:30 GMT+00:00 ; Thu, 29 Jul 2010 14:17:20 GMT+00:00
        http://a.example/img/y.jpg ; Sat, 27 Mar 2004 18:43:31 GMT+00:00 ; Thu, 29 Jul 2010 14:17:21 GMT+00:00
        """,
        // Four fields, one of them empty.
        """
        http://a.example/x.html ; Wed, 01 Mar 2006 12:00:00 GMT ; Thu, 29 Jul 2010 14:17:20 GMT ; text/html
        http://a.example/noext ; Wed, 01 Mar 2006 12:00:00 GMT ; Thu, 29 Jul 2010 14:17:20 GMT ;\u{20}
        """,
        // Five fields, as later versions.
        """
        baseURL = http://a.example
        http://a.example/x.html ; Wed, 01 Mar 2006 12:00:00 GMT ; NULL ; NULL ; a.example/x.html
        http://a.example/y?z=1 ; NULL ; NULL ; image/png ; a.example/.larder/y

        """,
    ]

    @Test(arguments: 0..<3) func eachFormComesBackAsItWas(_ index: Int) throws {
        let text = Self.fixtures[index]
        let manifest = try Manifest(parsing: Array(text.utf8))
        #expect(manifest.text == text)
        #expect(manifest.entries.count == 2 && manifest.style.form.rawValue == index + 3)
        #expect(try Manifest(parsing: Array(manifest.text.utf8)) == manifest)
        let windows = try Manifest(parsing: Array(text.split(separator: "\n").joined(separator: "\r\n").utf8))
        #expect(windows.entries == manifest.entries)
    }

    @Test func whatAnEntrySays() throws {
        let first = try #require(try Manifest(parsing: Array(Self.fixtures[0].utf8)).entries.first)
        #expect(first.url == "http://a.example/x.html")
        #expect(first.lastModified == Timestamp(seconds: 1_080_413_010))
        #expect(first.expires == Timestamp(seconds: 1_280_413_040))
        #expect(first.mediaType == nil && first.fileName == nil)
        let long = try Manifest(parsing: Array(Self.fixtures[2].utf8))
        #expect(long.baseURL == "http://a.example" && long.entries[0].mediaType == nil)
        #expect(long.entries[1].fileName == "a.example/.larder/y" && long.entries[1].lastModified == nil)
    }

    /// The description of the format has the media type on a line of its own.
    @Test func aMediaTypeOnTheNextLine() throws {
        let text = "http://a.example/x ; Wed, 01 Mar 2006 12:00:00 GMT ; Thu, 29 Jul 2010 14:17:20 GMT\n ; text/html\n"
        let entries = try Manifest(parsing: Array(text.utf8)).entries
        #expect(entries.map(\.mediaType) == ["text/html"])
    }

    @Test(arguments: [
        "http://a.example/x", "http://a.example/x ; yesterday ; NULL", "a ; b",
        " ; Wed, 01 Mar 2006 12:00:00 GMT ; NULL", "http://a.example/#x ; NULL ; NULL",
        "u ; NULL ; NULL ; NULL ; NULL ; NULL", "http://a.example/ ; Wed, 01 Mar 2006 12:00:00 GMT+01:00 ; NULL",
    ]) func linesThatAreNone(_ line: String) {
        let text = "http://a.example/fine ; NULL ; NULL\n" + line
        do {
            _ = try Manifest(parsing: Array(text.utf8))
            Issue.record("\(line) was read")
        } catch {
            #expect(error.code == .badManifest && error.message.hasPrefix("line 2 "))
        }
    }

    @Test func mediaTypes() {
        let types = MediaTypes(table: "# comment\nx/one  foo BAR # more\nx/two css\n")
        #expect(types.type(of: "a/b.FOO") == "x/one" && types.type(of: "b.bar") == "x/one")
        #expect(types.type(of: "c.css") == "x/two" && types.type(of: "d.html") == "text/html")
        #expect(types.type(of: "noext") == nil && types.type(of: ".html") == nil && types.type(of: "a.b/c") == nil)
    }
}
