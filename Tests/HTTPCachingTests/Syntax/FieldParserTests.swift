import HTTPScenarios
import HTTPTypes
import Testing

@testable import HTTPCaching

/// The field parsers against tables of values.
struct FieldParserTests {
    @Test(
        arguments: [
            ("0", 0), ("5", 5), ("003600", 3_600), ("2147483648", 2_147_483_648), ("99999999999", 99_999_999_999),
            ("4398046511104", 1 << 42),
            ("4398046511105", 1 << 42), ("999999999999999999999999999999", 1 << 42), ("", nil), ("-1", nil),
            ("+1", nil), ("1.0", nil), (" 1", nil),
            ("1a", nil), ("0x1", nil), ("１", nil),
        ] as [(String, Int64?)])
    func deltaSeconds(text: String, expected: Int64?) { #expect(DeltaSeconds.parse(text.utf8) == expected) }

    @Test(arguments: [
        ("\"a\"", true), ("W/\"a\"", true), ("\"\"", true), ("\"a b\"", false), ("a", false), ("\"a", false),
        ("a\"", false), ("w/\"a\"", false),
        ("W\"a\"", false), ("W/a", false), ("\"a\"b", false), ("\"a\"\"", false), ("\"", false), ("", false),
        ("\"ü\"", true), ("\"\u{7F}\"", false),
    ])
    func entityTags(text: String, isValid: Bool) {
        #expect((EntityTag(text.utf8) != nil) == isValid)
        // The short way to a match takes the same for a tag.
        Array(text.utf8).withUnsafeBytes {
            #expect(EntityTag.isSame($0, $0) == isValid)
            #expect(!EntityTag.isSame($0, UnsafeRawBufferPointer(rebasing: $0.dropLast())) || $0.isEmpty)
        }
    }

    @Test func setsOfNamesHaveTheirNamesAndNoOthers() {
        let names = ["via", "age", "etag", "vary", "te", "x-a", "keep-alive"]
        let set = FieldNameSet(names)
        func has(_ name: String) -> Bool { Array(name.utf8).withUnsafeBytes { set.contains($0) } }
        for name in names {
            #expect(set.contains(name) && has(name) && has(name.uppercased()) && has(name.capitalized), "\(name)")
            #expect(!set.contains(name.uppercased()), "\(name)")
            for other in [String(name.dropLast()), name + "x", "x" + name, String(name.dropLast()) + "!"] {
                #expect(!set.contains(other) && !has(other), "\(other)")
            }
        }
        #expect(!set.contains("") && !has("") && !FieldNameSet.none.contains("") && !FieldNameSet.none.contains("a"))
    }

    @Test func entityTagsCompareAsTheTableOfSection8832Says() throws {
        let weak1 = try #require(EntityTag("W/\"1\"".utf8))
        let weak2 = try #require(EntityTag("W/\"2\"".utf8))
        let strong1 = try #require(EntityTag("\"1\"".utf8))
        #expect(!weak1.matchesStrongly(weak1) && weak1.matchesWeakly(weak1))
        #expect(!weak1.matchesStrongly(weak2) && !weak1.matchesWeakly(weak2))
        #expect(!weak1.matchesStrongly(strong1) && weak1.matchesWeakly(strong1))
        #expect(strong1.matchesStrongly(strong1) && strong1.matchesWeakly(strong1))
    }

    @Test func entityTagsThatAreNotUTF8AreToldApart() {
        let first = HTTPField(name: .eTag, value: [0x22, 0xFC, 0x22] as [UInt8])
        let second = HTTPField(name: .eTag, value: [0x22, 0xFD, 0x22] as [UInt8])
        #expect(EntityTag(first.bytes) != nil && EntityTag(first.bytes) != EntityTag(second.bytes))
    }

    @Test(
        arguments: [
            ("bytes=0-499", [0..<500]), ("bytes=500-", [500..<1_000]), ("bytes=-500", [500..<1_000]),
            ("bytes=0-0,-1", [0..<1, 999..<1_000]),
            ("bytes= 0-1 , ,2-3", [0..<2, 2..<4]), ("bytes=1000-", []), ("bytes=-0", []),
            ("bytes=0-99999999999999999999", [0..<1_000]),
            ("bytes=1-0", nil), ("bytes=", nil), ("bytes=-", nil), ("bytes=a-", nil), ("bytes 0-1", nil),
            ("bytes=0 -1", nil), ("", nil),
            ("bytes=0-1;2-3", nil), ("=0-1", nil), ("bytes==0-1", nil), ("bytes=--1", nil), ("bytes=0--1", nil),
        ] as [(String, [Range<Int64>]?)])
    func ranges(text: String, expected: [Range<Int64>]?) {
        guard case .bytes(let field) = RangeField.parse(Array(text.utf8)) else {
            #expect(expected == nil)
            return
        }
        #expect(field.resolved(length: 1_000) == expected)
    }

    @Test(
        arguments: [
            ("bytes 0-4/10", ContentRange(range: 0..<5, completeLength: 10)),
            ("bytes 0-4/*", ContentRange(range: 0..<5, completeLength: nil)),
            ("bytes */10", ContentRange(range: nil, completeLength: 10)),
            ("BYTES 9-9/10", ContentRange(range: 9..<10, completeLength: 10)),
            ("bytes */*", nil), ("bytes 0-10/10", nil), ("bytes 4-0/10", nil), ("bytes=0-4/10", nil),
            ("lines 0-4/10", nil), ("bytes 0-4", nil),
            ("bytes 0/10", nil), ("bytes -4/10", nil), ("bytes 0-/10", nil), ("", nil), ("bytes ", nil),
            ("bytes /", nil), ("bytes 0-4/-1", nil),
            ("bytes 0-1/72057594037927935", ContentRange(range: 0..<2, completeLength: (1 << 56) - 1)),
            ("bytes 0-1/72057594037927936", nil), ("bytes 0-1/99999999999999999999", nil),
        ] as [(String, ContentRange?)])
    func contentRanges(text: String, expected: ContentRange?) {
        #expect(ContentRange(Array(text.utf8)) == expected)
        if let expected { #expect(expected.fieldValue.lowercased() == text.lowercased()) }
    }

    @Test func byteRangesMergeAndKnowTheirOffsets() {
        var set = ByteRanges([10..<20, 0..<5, 30..<30, 5..<6, -5..<0])
        #expect(set.ranges == [0..<6, 10..<20] && set.count == 16)
        #expect(set.storageOffset(of: 12) == 8 && set.storageOffset(of: 7) == nil && set.storageOffset(of: 0) == 0)
        #expect(set.contains(11..<20) && !set.contains(5..<11) && set.contains(99..<99))
        set.insert(6..<10)
        #expect(set.ranges == [0..<20])
    }

    @Test func directivesInAllTheirForms() {
        let text =
            "MAX-AGE=1, s-maxage=\"2\", no-cache=\"Set-Cookie, a\", no-cache=b, private=x, stale-if-error=3, stale-while-revalidate=4, immutable,public"
        let directives = ResponseDirectives(Array(text.utf8))
        #expect(directives.maxAge == .value(1) && directives.sMaxage == .value(2))
        #expect(directives.noCache == .fields(["set-cookie", "a", "b"]) && directives.isPrivate == .fields(["x"]))
        #expect(directives.staleIfError == .value(3) && directives.staleWhileRevalidate == .value(4))
        #expect(directives.immutable && directives.isPublic && !directives.noStore)
        #expect(ResponseDirectives(Array("no-cache=a, no-cache".utf8)).noCache == .unqualified)
        #expect(ResponseDirectives(Array("private, private=a".utf8)).isPrivate == .unqualified)
        #expect(
            ResponseDirectives(Array("no-store;x, public=1, immutable=\"\"".utf8))
                == {
                    var expected = ResponseDirectives()
                    expected.noStore = true
                    return expected
                }())
        let request = RequestDirectives(Array("max-age=x, max-stale=y, min-fresh=z, only-if-cached, no-transform".utf8))
        #expect(request.maxAge == 0 && request.maxStale == nil && request.minFresh == DeltaSeconds.maximum)
        #expect(request.onlyIfCached && request.noTransform)
        for text in ["max-stale = 5", "max-stale =5", "max-stale 5", "max-stale= 5", "max-stale; x y=\"a b\""] {
            let request = RequestDirectives(Array(text.utf8))
            #expect(request.maxStale == (text.contains(";") ? DeltaSeconds.maximum : nil), "\(text)")
        }
        // 64 KiB of what looks like quotes takes no longer than other text.
        for piece in ["\\\"", "=\"", "a=\"\\", "\"\\=\""] {
            let bytes = Array(String(repeating: piece, count: (64 << 10) / piece.utf8.count).utf8)
            for _ in 0..<50 { _ = ResponseDirectives(bytes) }
        }
    }

    @Test(
        arguments: [
            ("g", "http://a/b/c/g"), ("./g", "http://a/b/c/g"), ("g/", "http://a/b/c/g/"), ("/g", "http://a/g"),
            ("//g", "http://g/"),
            ("?y", "http://a/b/c/d;p?y"), ("g?y", "http://a/b/c/g?y"), ("#s", "http://a/b/c/d;p?q"),
            ("g#s", "http://a/b/c/g"), (";x", "http://a/b/c/;x"),
            ("", "http://a/b/c/d;p?q"), (".", "http://a/b/c/"), ("./", "http://a/b/c/"), ("..", "http://a/b/"),
            ("../", "http://a/b/"),
            ("../g", "http://a/b/g"), ("../..", "http://a/"), ("../../g", "http://a/g"), ("../../../g", "http://a/g"),
            ("/./g", "http://a/g"),
            ("/../g", "http://a/g"), ("g.", "http://a/b/c/g."), ("..g", "http://a/b/c/..g"),
            ("./g/.", "http://a/b/c/g/"), ("g/./h", "http://a/b/c/g/h"),
            ("g/../h", "http://a/b/c/h"), ("https://H:443/x", "https://h/x"), ("mailto:x", nil), ("http://", nil),
            ("http://u@h/", nil), ("a b", nil),
            ("http://h:99999/", nil), ("http://h:x/", nil),
        ] as [(String, String?)])
    func referencesOfRFC3986(reference: String, expected: String?) throws {
        let rules = CacheRules()
        let base = try #require(
            rules.cacheKey(for: HTTPRequest(method: .get, scheme: "http", authority: "a", path: "/b/c/d;p?q")))
        #expect(rules.cacheKey(of: Array(reference.utf8), relativeTo: base)?.uri == expected)
    }

    @Test(
        arguments: [
            ("http", "Example.COM:80", "/", "http://example.com/"),
            ("HTTPS", "example.com:443", "/a?b", "https://example.com/a?b"),
            ("http", "example.com:443", "/", "http://example.com:443/"),
            ("http", "example.com:", "", "http://example.com/"),
            ("http", "[::1]:80", "/", "http://[::1]/"), ("http", "[::1]", "/", "http://[::1]/"),
            ("http", "e.org", "?q", "http://e.org/?q"),
            ("http", "e.org", "/%7Ea/%41//../b", "http://e.org/%7Ea/%41//../b"), ("http", "e.org", "*", nil),
            ("http", "e.org", "e.org:80", nil),
            ("http", "", "/", nil), ("http", "a b", "/", nil), ("http", "a@b", "/", nil), ("http", "a/b", "/", nil),
            ("ftp", "e.org", "/", nil),
            ("http", "e.org:080", "/", "http://e.org/"), ("http", "e.org:-1", "/", nil), ("http", ":80", "/", nil),
            ("http", "a:b:80", "/", nil), ("http", "[::1", "/", nil), ("http", "a]:80", "/", nil),
            ("http", "e.org:8080", "/", "http://e.org:8080/"), ("http", "E.org:8080", "/", "http://e.org:8080/"),
            ("https", "e.org:80", "/", "https://e.org:80/"), ("http", "e.org:08080", "/", "http://e.org:8080/"),
            ("http", "e.org:65535", "/", "http://e.org:65535/"), ("http", "e.org:65536", "/", nil),
            ("http", "e.org:8080x", "/", nil), ("http", "e.org:8080:", "/", nil),
            ("http", "e.org:0", "/", "http://e.org:0/"),
            ("http", "e.org", "/a#b", nil), ("http", "e.org", "/a#\u{301}", nil),
        ] as [(String, String, String, String?)])
    func cacheKeys(scheme: String, authority: String, path: String, expected: String?) {
        let request = HTTPRequest(method: .get, scheme: scheme, authority: authority, path: path)
        #expect(CacheRules().cacheKey(for: request)?.uri == expected)
    }

    @Test func theHostFieldStandsInForTheAuthorityOnce() {
        var request = HTTPRequest(method: .get, scheme: nil, authority: nil, path: "/")
        request.headerFields.append(HTTPField(name: .hostField, value: "E.org"))
        #expect(CacheRules().cacheKey(for: request)?.uri == "http://e.org/")
        request.headerFields.append(HTTPField(name: .hostField, value: "f.org"))
        #expect(CacheRules().cacheKey(for: request) == nil)
    }

    @Test func groupsAreListsOfStrings() {
        #expect(StringList.parse(Array("\"a\", \"b\";x=1".utf8)) == ["a", "b"])
        #expect(StringList.parse(Array("\"a\", b".utf8)) == nil)
        #expect(StringList.parse(Array("(\"a\")".utf8)) == nil)
        let many = (0..<40).map { "\"group-\($0)-of-thirty-two-characters\"" }.joined(separator: ", ")
        #expect(StringList.parse(Array(many.utf8))?.count == 40)
    }
}
