import Larder
import Testing

@testable import CachectlCore

@Suite struct KeyPathTests {
    private func path(_ key: String) -> String {
        KeyPath.components(of: Key(key)).map { String(decoding: $0, as: UTF8.self) }.joined(separator: "/")
    }

    @Test(arguments: [
        ("https://example.com/a/b.html", "https/example.com/a/b.html"),
        ("https://example.com:8080/", "https/example.com:8080/%"),
        ("https://example.com", "https/example.com"),
        ("file:///usr/share/a%20b", "file/usr/share/a b"),
        ("file://host/x", "file%host/host/x"),
        ("http://h/p?q=1&r=2", "http/h/%p?q=1&r=2"),
        ("http://h/%7euser", "http/h/%%257euser"),
        ("plain", "_keys/plain"),
        ("a/b", "_keys/a/b"),
        ("1http://h/x", "_keys/1http:/%/h/x"),
    ])
    func keysBecomeReadablePaths(key: String, expected: String) { #expect(path(key) == expected) }

    @Test(arguments: [
        "http://h/../../etc/passwd", "http://h/%2e%2e/x", "http://../x", "../x", "/etc/passwd", "..", ".", "//", "a//b",
        "http://h/a%2Fb", "http://h/a%00b", "http://h/%", "file:///../x", "\u{0}", "http://h/\u{1}\n",
    ])
    func noPathLeavesTheTree(key: String) {
        for component in KeyPath.components(of: Key(key)) {
            #expect(!component.isEmpty && component.count <= 255)
            #expect(component != Array(".".utf8) && component != Array("..".utf8))
            #expect(!component.contains(0) && !component.contains(UInt8(ascii: "/")))
        }
    }

    @Test func longNamesAreHashed() {
        let key = Key("http://h/" + String(repeating: "x", count: 256))
        #expect(KeyPath.components(of: key) == KeyPath.hashed(key))
        let deep = Key("http://h/" + String(repeating: "x/", count: 3000))
        #expect(KeyPath.components(of: deep) == KeyPath.hashed(deep))
    }

    @Test func differentKeysGetDifferentPaths() {
        // Short keys of the characters that matter, all of them.
        let alphabet = Array("a/%2:.?F ".utf8)
        var seen: [[[UInt8]]: Key] = [:]
        func visit(_ bytes: [UInt8]) {
            let key = Key(bytes: Array("http://".utf8) + bytes)
            let path = KeyPath.components(of: key)
            if let other = seen[path] { Issue.record("\(other) and \(key) share \(path)") }
            seen[path] = key
            if bytes.count < 5 { for byte in alphabet { visit(bytes + [byte]) } }
        }
        visit([])
        #expect(seen.count > 60_000)
    }

    @Test func variantsHaveFilesThatNoOtherKeyCanHave() {
        func path(_ variant: [String], _ url: String = "http://h/v") -> String {
            let key = Key(url)
            return KeyPath.components(of: key, after: nil, variant: variant, Key(url + " vary=\(variant)"))
                .map { String(decoding: $0, as: UTF8.self) }.joined(separator: "/")
        }
        #expect(path(["accept-language: de"]) == "http/h/%v [accept-language: de]")
        #expect(path(["accept", "accept-language: de, en"]) == "http/h/%v [accept, accept-language: de%2C en]")
        #expect(path(["a", "b"]) != path(["a, b"]))
        #expect(path(["a: ]/../x"]) == "http/h/%v [a: %5D%2F..%2Fx]")
        #expect(path([], "http://h/") == "http/h/% []")
        // Another key with such a name: brackets are encoded.
        #expect(self.path("http://h/v [accept-language: de]") == "http/h/%v %5Baccept-language: de%5D")
        let long = [String(repeating: "x", count: 300)]
        #expect(path(long).hasPrefix("_hashed/") && path(long) != path([]))
    }

    /// Where keys go that cannot have a path of their own.
    @Test func noOtherKeyGoesToHashed() {
        func path(_ name: String) -> String {
            KeyPath.components(of: Key("http://h/" + name), after: Key("http://h/"))
                .map { String(decoding: $0, as: UTF8.self) }.joined(separator: "/")
        }
        #expect(path("_hashed") == "%_hashed")
        #expect(path("_Hashed/a") == "%_Hashed/a")
        #expect(path("a/_hashed") == "a/_hashed")
        #expect(path(String(repeating: "x", count: 300)).hasPrefix("_hashed/"))
    }

    @Test(arguments: ["a b", "ümlaut", "100%", "%41", "a?b#c", "a+b=c", ".hidden", "x\u{1}y", "a\\b", "[]"])
    func importedNamesComeBack(name: String) {
        let base = KeyPath.base(directory: Array("/tmp/t r".utf8))
        let key = KeyPath.key(base: base, path: Array("d/\(name)".utf8))
        #expect(String(decoding: base, as: UTF8.self) == "file:///tmp/t%20r/")
        let components = KeyPath.components(of: key, after: Key(bytes: base))
        if name.hasPrefix("%") {
            #expect(components.count == 2)
        } else {
            #expect(components == [Array("d".utf8), Array(name.utf8)])
        }
    }

    @Test func namesThatAreNotTextComeBackOrStayEncoded() {
        let name: [UInt8] = [0xFF, 0xFE, 0x20, 0x80]
        let key = KeyPath.key(base: Array("x://h/".utf8), path: name)
        #expect(KeyPath.components(of: key, KeyPath.Rules()).last == name)
        // What APFS refuses.
        let encoded = KeyPath.components(of: key, KeyPath.Rules(takesAnyBytes: false))
        #expect(encoded.allSatisfy { String(validating: $0, as: UTF8.self) != nil })
        #expect(encoded != KeyPath.components(of: Key("x://h/%ff%fe%20%81"), KeyPath.Rules(takesAnyBytes: false)))
        // A name that is text is the same for both.
        let text = KeyPath.key(base: Array("x://h/".utf8), path: Array("ü b".utf8))
        #expect(
            KeyPath.components(of: text, KeyPath.Rules(takesAnyBytes: false))
                == KeyPath.components(of: text, KeyPath.Rules()))
    }

    @Test func pathsThatAFileSystemMayTakeForOneAreFoldedTogether() {
        func folded(_ path: String) -> String { KeyPath.folded(path.split(separator: "/").map { Array($0.utf8) }) }
        #expect(folded("http/h/A") == folded("http/h/a"))
        // One character, or a letter and an accent.
        #expect(folded("u\u{308}") == folded("\u{FC}"))
        #expect(folded("a/b") != folded("ab"))
    }
}
