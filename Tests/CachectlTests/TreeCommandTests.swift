import Foundation
import Larder
import SystemPackage
import TestSupport
import Testing

@testable import CachectlCore
@testable import cachectl

@Suite struct TreeCommandTests {
    @Test func aTreeComesBackAsItWas() throws {
        let place = try Workplace()
        for (name, size) in [
            ("a b/c", 10), ("a b/d?e#f", 70_000), ("ü", 0), (".hidden/x%y", 5), ("deep/er/and/deeper", 1),
        ] {
            _ = try place.file("tree/\(name)", [UInt8](repeating: 65, count: size))
        }
        let tree = place.path.appending("tree").string
        try FileManager.default.createSymbolicLink(atPath: tree + "/link", withDestinationPath: "/etc/passwd")
        let out = place.path.appending("out").string
        let imported = try place.run("import", tree, "--base-url", "http://h/t", "--json")
        #expect(imported.status == 0 && imported.json["files"] as? Int == 5)
        #expect(try place.run("export", out, "--base-url", "http://h/t", "--json").json["files"] as? Int == 5)
        try FileManager.default.removeItem(atPath: tree + "/link")
        #expect(place.contents(of: "out") == place.contents(of: "tree"))

        let again = try place.run("export", out, "--base-url", "http://h/t", "--json")
        #expect(again.json["files"] as? Int == 0 && again.json["skippedExisting"] as? Int == 5)
        #expect(
            try place.run("export", out, "--base-url", "http://h/t", "--force", "--json").json["files"] as? Int == 5)
        #expect(try place.run("get", "http://h/t/a%20b/c").output.count == 10)
        #expect(try place.run("verify").status == 0)
    }

    @Test func filesOverTheBudgetAreSkippedAndReported() throws {
        let place = try Workplace()
        _ = try place.file("tree/small", [1])
        _ = try place.file("tree/large", [UInt8](repeating: 2, count: 3 << 20))
        let run = try place.run("import", place.path.appending("tree").string, "--budget", "2MiB")
        #expect(run.status == 0)
        #expect(run.text == "stored 1 file, 1 B, skipped 1 too large\n")
        #expect(run.errors.contains("tree/large"))
        #expect(recount(.init(place.store)) <= 2 << 20)
    }

    @Test func noKeyLeavesTheDirectory() throws {
        let place = try Workplace()
        let keys = [
            "http://h/../../escape", "../escape", "/escape", "http://h/a", "http://h/a/b", "http://h/%2e%2e/escape",
        ]
        for key in keys { try place.run("put", key, input: Array(key.utf8)) }
        let out = place.path.appending("d/e/out").string
        // A link that is there already must not be followed.
        try FileManager.default.createDirectory(atPath: out, withIntermediateDirectories: true)
        try FileManager.default.createSymbolicLink(atPath: out + "/http", withDestinationPath: place.path.string)
        #expect(try place.run("export", out, "--json").json["files"] as? Int == keys.count)
        let written = place.contents(of: "d")
        #expect(Set(written.values) == Set(keys.map { Data($0.utf8) }))
        #expect(written.keys.allSatisfy { $0.hasPrefix("e/out/") })
    }

    /// As on APFS: the second of two keys whose paths would be one file gets a path of its own.
    @Test func keysThatDifferInCaseStayApartWhereTheFileSystemIgnoresIt() throws {
        let place = try Workplace()
        let keys = ["http://h/a", "http://h/A", "http://h/D/x", "http://h/d/y", "http://h/\u{FC}", "http://h/u\u{308}"]
        for key in keys { try place.run("put", key, input: Array(key.utf8)) }
        let store = try Store(at: FilePath(place.store))
        defer { try? store.close() }
        let out = place.path.appending("out")
        var exporter = try Exporter(store, to: FilePath(out.string), base: nil, replaces: false, ignoresCase: true)
        for key in keys { try exporter.export(try #require(try store.attributes(of: Key(key)))) }
        let written = place.contents(of: "out")
        #expect(Set(written.values) == Set(keys.map { Data($0.utf8) }))
        #expect(Set(written.keys.map { $0.lowercased() }).count == keys.count)
        // Whether it does is found out by trying.
        var sensitive = try Exporter(store, to: FilePath(out.string + "-2"), base: nil, replaces: false)
        for key in keys.prefix(4) { try sensitive.export(try #require(try store.attributes(of: Key(key)))) }
        #if os(Linux)
            #expect(place.contents(of: "out-2").keys.allSatisfy { !$0.contains("_hashed") })
        #endif
    }

    @Test func filesWhosePathIsTakenAreTold() throws {
        let place = try Workplace()
        try place.run("put", "http://h/dist/a", input: [1])
        _ = try place.file("out/http/h/dist", [0])
        let out = place.path.appending("out").string
        let run = try place.run("export", out, "--json")
        #expect(run.status == 0 && run.json["hashed"] as? Int == 1 && run.errors.contains("1 file is in _hashed"))
        #expect(try place.run("export", out, "--json").json["hashed"] as? Int == 0)
    }

    @Test func aNameOf255BytesComesBack() throws {
        let place = try Workplace()
        let name = String(repeating: "n", count: 255)
        _ = try place.file("tree/\(name)", [1, 2])
        let imported = try place.run(
            "import", place.path.appending("tree").string, "--base-url", "http://h/t", "--json")
        #expect(imported.json["files"] as? Int == 1)
        #expect(try place.run("get", "http://h/t/\(name)").output.count == 2)
    }

    @Test func treesThatAreNotThereExitWith66() throws {
        let place = try Workplace()
        #expect(try place.run("import", place.path.appending("none").string).status == 66)
        #expect(try place.run("import", try place.file("f", [1])).status == 66)
        #expect(!FileManager.default.fileExists(atPath: place.store))
        try place.run("put", "a", input: [1])
        #expect(try place.run("export", try place.file("f", [1])).status == 73)
    }
}
