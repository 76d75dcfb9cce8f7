import TestSupport
import Testing

@testable import Larder

@Suite struct KeyTests {
    static let awkward: [Key] = [
        "/", "..", "../../etc/passwd", "/etc/passwd", "a/b/c", "a//b", ".", "~", "con", "a\nb", "%2e%2e%2f",
        "'; DROP TABLE",
        Key(bytes: [0]), Key(bytes: [0, 0]), Key(bytes: [255]), Key(bytes: Array("a\0b".utf8)),
        Key(bytes: 0...255 as ClosedRange<UInt8>),
        "ключ", "🗝️", Key(String(repeating: "n", count: 256)),
    ]

    @Test func keysOfAnyBytesRoundTripAndNeverBecomePaths() throws {
        try withStore { store in
            for (number, key) in Self.awkward.enumerated() { try store.put(body(5000, number), for: key) }
            for (number, key) in Self.awkward.enumerated() {
                try #expect(store.bytes(key) == body(5000, number))
                try #expect(store.attributes(of: key)?.key == key)
            }
            try #expect(Set(store.keys()) == Set(Self.awkward))
            let outside = TestFiles.tree(store.path).filter {
                !$0.hasPrefix("blobs/") && !$0.hasPrefix("index/") && !$0.hasPrefix("staging/")
            }
            #expect(outside == ["CACHEDIR.TAG", "FORMAT"])
            for key in Self.awkward { try #expect(store.remove(key) == true) }
            try #expect(store.statistics().entryCount == 0)
        }
    }

    @Test func keysAreOrderedByTheirBytesAsListingsAre() throws {
        #expect(Key("a") < Key("b") && Key("a") < Key("aa") && Key("Z") < Key("a"))
        #expect(Key(bytes: [0x7F]) < Key(bytes: [0x80]) && Key(bytes: []) < Key(bytes: [0]))
        #expect(!(Key("a") < Key("a")))
        try withStore { store in
            for key in Self.awkward.shuffled() { try store.put([1], for: key) }
            try #expect(store.keys() == Self.awkward.sorted())
        }
    }

    /// 478 bytes is the longest key that stands in the index whole.
    @Test(arguments: [1, 477, 478, 479, 480, 510, 511, 512, 4096, 65_535, 65_536])
    func keysOfEveryLengthRoundTrip(_ length: Int) throws {
        try withStore { store in
            let key = Key(bytes: body(length))
            var other = key.bytes
            other[length - 1] ^= 1
            try store.put([1], for: key)
            try #expect(store.get(Key(bytes: other)) == nil)
            try store.put([2], for: Key(bytes: other))
            try #expect(store.bytes(key) == [1])
            try store.flush()
            try #expect(store.bytes(key) == [1])
            try #expect(store.bytes(Key(bytes: other)) == [2])
            try #expect(Set(store.keys()) == [key, Key(bytes: other)])
            try #expect(store.remove(key) == true)
            try #expect(store.keys() == [Key(bytes: other)])
        }
    }

    @Test func longKeysWithACommonPrefixAreDistinctAndListedByPrefix() throws {
        try withStore { store in
            let prefix = [UInt8](repeating: 0x61, count: 1000)
            let keys = (0..<100).map { Key(bytes: prefix + body(20, $0)) } + [Key(bytes: prefix)]
            for (number, key) in keys.enumerated() { try store.put([UInt8(number)], for: key) }
            for (number, key) in keys.enumerated() { try #expect(store.bytes(key) == [UInt8(number)]) }
            try #expect(Set(store.keys(.prefix(Key(bytes: prefix)))) == Set(keys))
            let longer = Key(bytes: prefix + body(20, 7).prefix(3))
            try #expect(store.keys(.prefix(longer)) == [keys[7]])
            try #expect(store.keys(.prefix(Key(bytes: prefix + [0x62, 0x62, 0x62]))) == [])
            try #expect(store.remove(.prefix(longer)) == 1)
            try #expect(store.get(keys[7]) == nil)
            try #expect(store.bytes(keys[8]) == [8])
        }
    }

    @Test func aShortKeyThatLooksLikeTheIndexFormOfALongOneIsAnotherKey() throws {
        try withStore { store in
            let long = Key(bytes: body(1000))
            let form = Key(bytes: IndexKey.bytes(for: long))
            #expect(form.bytes.count == 511)
            try store.put([1], for: long)
            try store.flush()
            try #expect(store.get(form) == nil)
            try store.put([2], for: form)
            try #expect(store.bytes(long) == [1])
            try #expect(store.bytes(form) == [2])
        }
    }

    @Test(arguments: [(0, LarderError.Code.invalidArgument), (65_537, .tooLarge), (1 << 20, .tooLarge)])
    func keysOutOfRangeAreRefusedByWritesAndMissedByReads(_ length: Int, _ expected: LarderError.Code) throws {
        try withStore { store in
            let key = Key(bytes: body(length))
            let refused: [() throws -> Void] = [
                { try store.put([1], for: key) }, { try store.put(body(9000), for: key) }, { try store.remove(key) },
                { _ = try store.writer(for: key) }, { try store.touch(key) }, { try store.pin(key) },
                { try store.unpin(key) }, { _ = try store.lease(key) },
            ]
            for call in refused { try #expect(code(call) == expected) }
            try #expect(store.get(key) == nil)
            try #expect(store.contains(key) == false)
            try #expect(store.attributes(of: key) == nil)
            try #expect(store.withBody(of: key) { _ in 1 } == nil)
            #expect(store.stagedFiles == [])
            try #expect(store.statistics().entryCount == 0)
        }
    }

    @Test func keysThatOthersNormaliseStayDistinct() throws {
        let urls: [Key] = [
            "http://h/a", "http://h/a/", "https://h/a", "http://h/a?x", "http://h/a?y", "http://h/a#f", "http://H/a",
            "http://h:80/a", "http://h/A", "http://h/%61",
        ]
        try withStore { store in
            for (number, key) in urls.enumerated() { try store.put([UInt8(number)], for: key) }
            for (number, key) in urls.enumerated() { try #expect(store.bytes(key) == [UInt8(number)]) }
            try store.remove("http://h/a")
            try #expect(store.bytes("http://h/a/") == [1])
            try #expect(store.statistics().entryCount == urls.count - 1)
        }
    }

    @Test func descriptionsShowTextEscapeTheRestAndCutLongKeys() {
        #expect(Key("a/ключ").description == "a/ключ")
        #expect(Key("a\nb\u{7F}").description == "a\\x0ab\\x7f")
        // Characters that a terminal obeys: control characters above ASCII, a line's end, another direction of text.
        #expect(Key("a\u{9B}31m\u{2028}b").text == "a\\xc2\\x9b31m\\xe2\\x80\\xa8b")
        #expect(Key("cod\u{202E}gpj.exe\u{2066}").text == "cod\\xe2\\x80\\xaegpj.exe\\xe2\\x81\\xa6")
        #expect(Key("שלום 👩‍👩‍👧").text == "שלום 👩‍👩‍👧")
        #expect(Key(bytes: [0x61, 0xFF, 0x00]).description == "a\\xff\\x00")
        #expect(
            Key(String(repeating: "k", count: 201)).description == String(repeating: "k", count: 200)
                + "... (201 bytes)")
        #expect(Key(String(repeating: "k", count: 201)).text.count == 201)
    }
}
