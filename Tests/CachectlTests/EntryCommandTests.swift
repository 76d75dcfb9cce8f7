import Foundation
import Larder
import SystemPackage
import TestSupport
import Testing

@testable import CachectlCore
@testable import CachectlDemo
@testable import cachectl

@Suite struct EntryCommandTests {
    @Test func bodiesComeBackByteForByte() throws {
        let place = try Workplace()
        var random = RandomBytes(seed: 7)
        for size in [0, 1, 65_536, 65_537, 3_000_000] {
            let body = random.bytes(size)
            #expect(try place.run("put", "stdin\(size)", input: body).status == 0)
            #expect(
                try place.run("put", "file\(size)", try place.file("in", body), "--json").json["length"] as? Int == size
            )
            #expect(try place.run("get", "stdin\(size)").output == body)
            let target = place.path.appending("out").string
            #expect(try place.run("get", "file\(size)", "-o", target).status == 0)
            #expect(FileManager.default.contents(atPath: target) == Data(body))
        }
        #if os(Linux)
            // The system makes it as it is read, and says that it has no bytes.
            let made = try Array(#require(FileManager.default.contents(atPath: "/proc/version")))
            #expect(try place.run("put", "made", "/proc/version", "--json").json["length"] as? Int == made.count)
            #expect(try place.run("get", "made").output == made && !made.isEmpty)
        #endif
        #expect(try place.run("get", "stdin65536", "-o", "-").output.count == 65_536)
        #expect(!FileManager.default.fileExists(atPath: "-"))
        // Standard output is a file here, and stays what the name leads to. /dev/stdout is the same, and would be
        // replaced for the whole machine by a fault.
        #expect(try place.run("get", "stdin65536", "-o", "/dev/fd/1").output.count == 65_536)
        let encoded = try place.run("get", "stdin1", "--json").json["bodyBase64"] as? String
        #expect(Data(base64Encoded: encoded ?? "")?.count == 1)
        #expect(try place.run("verify").status == 0)
    }

    /// Such as those of the store's index.
    @Test func descriptorsOfTheProgramItselfAreNoOutput() throws {
        let place = try Workplace()
        let path = FilePath(try place.file("own", [1, 2]))
        let own = try FileDescriptor.open(path, .readWrite, options: .closeOnExec)
        try own.closeAfter {
            for folder in ["/dev/fd", "/proc/self/fd"] {
                #expect(throws: CommandError.self) {
                    try FileOutput.replace(FilePath("\(folder)/\(own.rawValue)")) { try $0.writeAll([3]) }
                }
            }
        }
        #expect(FileManager.default.contents(atPath: path.string) == Data([1, 2]))
    }

    /// The first file that is opened would have its number.
    @Test func standardInputThatIsClosedIsAnError() throws {
        let place = try Workplace()
        let script = "exec \"$0\" put k --store \"$1\" <&-"
        let process = try CommandRun.start([CommandRun.path, place.store], prefix: ["/bin/sh", "-c", script])
        process.waitUntilExit()
        #expect(process.terminationReason == .exit && process.terminationStatus == 74)
    }

    @Test func missesExitWith1() throws {
        let place = try Workplace()
        #expect(try place.run("put", "a", input: [1]).status == 0)
        for command in [["get", "x"], ["stat", "x"], ["rm", "x"], ["touch", "x"], ["pin", "x"], ["unpin", "x"]] {
            let run = try CommandRun.cachectl(command + ["--store", place.store])
            #expect(run.status == 1)
            #expect(run.errors == "cachectl: there is no entry under x\n")
        }
        let error = try place.run("get", "x", "--json").errors
        #expect(error.contains(#""code":"missing","exitCode":1"#))
    }

    @Test func expiredEntriesAreMissesUnlessAskedFor() throws {
        let place = try Workplace()
        try place.run("put", "a", "--lifetime", "0s", input: [1])
        let miss = try place.run("get", "a")
        #expect(miss.status == 1 && miss.errors.contains("--expired"))
        #expect(try place.run("get", "a", "--expired").output == [1])
        #expect(try place.run("stat", "a", "--json").json["isExpired"] as? Bool == true)
        #expect(try place.run("touch", "a", "--lifetime", "1d", "--json").json["isExpired"] as? Bool == false)
        #expect(try place.run("get", "a").status == 0)
    }

    @Test func aBodyIsStoredWithoutAKey() throws {
        let place = try Workplace()
        var random = RandomBytes(seed: 5)
        for size in [0, 10, 300_000] {
            let body = random.bytes(size)
            let file = try place.file("in", body)
            let digest = try #require(try place.run("put", "given", file, "--json").json["digest"] as? String)
            let runs = try [
                place.run("put", "--by-digest", "--json", input: body), place.run("put", "--by-digest", file, "--json"),
                place.run("put", "--unique", "--json", input: body), place.run("put", "--unique", file, "--json"),
            ]
            let keys = runs.compactMap { $0.json["key"] as? String }
            #expect(keys[..<2] == ["sha256:" + digest, "sha256:" + digest])
            #expect(keys[2...].allSatisfy { $0.hasPrefix("urn:uuid:") } && Set(keys).count == 3)
            for (run, key) in zip(runs, keys) {
                #expect(run.json["digest"] as? String == digest && run.json["length"] as? Int == size)
                #expect(try place.run("get", key).output == body)
            }
            #expect(try place.run("put", "--by-digest", file).text.contains(" under sha256:\(digest), SHA-256"))
        }
        #expect(try place.run("put", input: [1]).status == 64)
        #expect(try place.run("put", "--unique", "--by-digest", input: [1]).status == 64)
        #expect(try place.run("put", "--unique", "key", "file", input: [1]).status == 64)
        #expect(try place.run("put", "--unique", place.path.appending("none").string).status == 66)
        let zeros = String(repeating: "0", count: 64)
        #expect(try place.run("put", "--by-digest", "--digest", zeros, input: [1]).status == 65)
    }

    @Test func aWrongDigestStoresNothing() throws {
        let place = try Workplace()
        let zeros = String(repeating: "0", count: 64)
        #expect(try place.run("put", "a", "--digest", zeros, input: [1]).status == 65)
        #expect(try place.run("put", "a", try place.file("f", [1]), "--digest", zeros).status == 65)
        #expect(try place.run("put", "a", "--digest", "abc", input: [1]).status == 64)
        #expect(try place.run("get", "a").status == 1)
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        #expect(try place.run("put", "a", "--digest", empty, "--durable").json.isEmpty)
        #expect(try place.run("stat", "a", "--json").json["digest"] as? String == empty)
    }

    @Test func removalTakesAKeyOrASelection() throws {
        let place = try Workplace()
        for key in ["a/1", "a/2", "b/1", "b/2"] { try place.run("put", key, "--tag", "t" + key.suffix(1), input: [1]) }
        #expect(try place.run("rm").status == 64)
        #expect(try place.run("rm", "a/1", "--all").status == 64)
        #expect(try place.run("rm", "a/1", "--tag", "t1").status == 64)
        #expect(try place.run("rm", "--tag", "t1", "--all").status == 64)
        #expect(try place.run("rm", "--pinned", "--unpinned").status == 64)
        // What a shell makes of a variable that is not set.
        for arguments in [["--prefix", ""], ["--tag", ""], ["--host", ""], ["--except", ""], [""]] {
            let run = try CommandRun.cachectl(["rm", "--store", place.store] + arguments)
            #expect(run.status == 64 && run.errors.contains("is empty"), "\(arguments): \(run.text)")
        }
        #expect(try place.run("stat", "--json").json["entryCount"] as? Int == 4)
        #expect(try place.run("rm", "--older-than", "1h", "--json").json["removed"] as? Int == 0)
        #expect(try place.run("rm", "--expired", "--json").json["removed"] as? Int == 0)
        #expect(try place.run("rm", "--tag", "t2", "--json").json["removed"] as? Int == 2)
        #expect(try place.run("rm", "--prefix", "a/", "--json").json["removed"] as? Int == 1)
        #expect(try place.run("rm", "--unused-for", "0s", "--json").json["removed"] as? Int == 1)
        try place.run("put", "c", input: [1])
        #expect(try place.run("rm", "--all").text == "removed 1 entry\n")
        #expect(try place.run("stat", "--json").json["entryCount"] as? Int == 0)
    }

    /// Without `--store` the store is in the platform's cache directory (XDG Base Directory Specification).
    #if os(Linux)
        @Test func theDefaultStoreIsInTheCacheDirectory() throws {
            let place = try Workplace()
            for (variable, path) in [("XDG_CACHE_HOME", "larder"), ("HOME", ".cache/larder")] {
                let base = place.path.appending(variable.lowercased())
                let other = variable == "HOME" ? "XDG_CACHE_HOME=not/absolute" : "HOME=/nonexistent"
                let run = try CommandRun.start(
                    ["put", "k", place.file("body", [1])],
                    prefix: ["/usr/bin/env", other, "\(variable)=\(base)", CommandRun.path])
                run.waitUntilExit()
                #expect(run.terminationStatus == 0)
                let found = try CommandRun.cachectl(["ls", "--json", "--store", base.appending(path).string])
                #expect(found.status == 0)
            }
        }
    #endif

    @Test func aLeaseKeepsEntriesForAWhile() throws {
        let place = try Workplace()
        for key in ["a", "b", "c", "d"] { try place.run("put", key, "--tag", "t" + key, input: Array(key.utf8)) }
        let digest = try #require(try place.run("stat", "c", "--json").json["digest"] as? String)
        #expect(try place.run("lease", "a", "--for", "1h", "--json").json["leases"] as? Int == 1)
        #expect(try place.run("lease", "--tag", "tb", "--digest", digest, "--for", "1h").text == "took 2 leases\n")
        #expect(try place.run("budget", "--entries", "1").status != 64)
        for (key, status) in [("a", 0), ("b", 0), ("c", 0), ("d", 1)] as [(String, Int32)] {
            #expect(try place.run("get", key).status == status, "\(key)")
        }
        for arguments in [
            ["lease", "--for", "1h"], ["lease", "a"], ["lease", "a", "--for", "10"],
            ["lease", "--digest", "12", "--for", "1h"],
        ] {
            #expect(try CommandRun.cachectl(arguments + ["--store", place.store]).status == 64, "\(arguments)")
        }
    }

    /// Each field of an entry, the application version and the leases among them.
    @Test func statShowsEveryFieldOfAnEntry() throws {
        let place = try Workplace()
        let clock = TestClock()
        let store = try Store(at: FilePath(place.store), .testing(clock: clock) { $0.version = "app 2" })
        let options = PutOptions(
            lifetime: .duration(.seconds(60)), storagePolicy: .session, tags: ["t"], metadata: [1, 2], isPinned: true)
        try store.put([UInt8](repeating: 7, count: 100_000), for: "k", options)
        try store.put([UInt8](repeating: 7, count: 100_000), for: "other")
        _ = try store.get("k")
        let attributes = try #require(try store.attributes(of: "k"))

        let json = try place.run("stat", "k", "--json").json
        #expect(json["digest"] as? String == attributes.digest.hexadecimal)
        #expect(json["length"] as? Int == 100_000 && json["storedLength"] as? Int == 100_000)
        #expect(json["isInline"] as? Bool == false && json["references"] as? Int == 2)
        #expect(json["created"] as? String == attributes.created.description)
        #expect(json["stored"] as? String == attributes.stored.description)
        #expect(json["lastAccess"] as? String == attributes.lastAccess.description)
        #expect(json["expires"] as? String == attributes.expires?.description)
        #expect(json["hitCount"] as? Int == 1)
        #expect(json["policy"] as? String == "session" && json["isPinned"] as? Bool == true)
        #expect(json["tags"] as? [String] == ["t"] && json["metadataBase64"] as? String == "AQI=")
        #expect(json["applicationVersion"] as? String == "app 2")
        let text = try place.run("stat", "k").text
        for line in [
            "digest     \(attributes.digest.hexadecimal)\n", "length     100 KB (100,000 bytes)\n",
            "stored     100 KB in its own file, identity\n", "shared by  2 entries\n",
            "created    \(attributes.created)\n", "put        \(attributes.stored)\n",
            "last use   \(attributes.lastAccess), 1 hit\n", "policy     session, pinned\n", "tags       t\n",
            "version    app 2\n", "metadata   2 bytes\n",
        ] {
            #expect(text.contains(line), "no '\(line)' in \(text)")
        }
        try store.close()
        try place.run("put", "plain", input: [1])
        #expect(try place.run("stat", "plain", "--json").json["applicationVersion"] is NSNull)
        #expect(try place.run("stat", "plain").text.contains("version    none\n"))
    }

    @Test func statShowsTheLeasesOnAnEntry() throws {
        let place = try Workplace()
        try place.run("put", "k", "--tag", "t", input: [1])
        #expect((try place.run("stat", "k", "--json").json["leases"] as? [Any])?.isEmpty == true)
        try place.run("lease", "--tag", "t", "--for", "1h")
        let store = try Store(at: FilePath(place.store), .testing())
        let held = try store.lease("k", for: .seconds(3600))
        let expected = try #require(try store.attributes(of: "k")?.leases)
        #expect(expected.count == 2)
        let json = try #require(try place.run("stat", "k", "--json").json["leases"] as? [[String: Any]])
        #expect(json.map { $0["subject"] as? String } == ["key", "tag"])
        #expect(json.map { $0["tag"] as? String } == [nil, "t"])
        #expect(json.map { $0["expires"] as? String } == expected.map(\.expires.description))
        #expect(json.map { $0["holder"] as? String } == ["process", "timeOnly"])
        let text = try place.run("stat", "k").text
        #expect(text.contains("lease      of the key, until \(expected[0].expires), held by a process\n"))
        #expect(text.contains("lease      of the tag t, until \(expected[1].expires)\n"))
        // A listing does not look them up.
        #expect(try place.run("ls", "--json").text.contains(#""leases":null"#))
        held.release()
        try store.close()
        #expect((try place.run("stat", "k", "--json").json["leases"] as? [Any])?.count == 1)
    }

    @Test func optionsThatSelectAreCombined() throws {
        let place = try Workplace()
        let entries: [(key: String, options: [String], length: Int)] = [
            ("http://a.test/1", ["--tag", "x"], 10), ("https://a.test:8443/2", ["--tag", "x", "--tag", "y"], 2_000),
            ("http://b.test/1", ["--tag", "x", "--pin"], 10), ("http://b.test/2", ["--tag", "y"], 2_000),
        ]
        for entry in entries {
            let body = [UInt8](repeating: UInt8(entry.key.utf8.count), count: entry.length)
            _ = try CommandRun.cachectl(["put", entry.key, "--store", place.store] + entry.options, input: body)
        }
        func keys(_ options: String...) throws -> [String] {
            let run = try CommandRun.cachectl(["ls", "--json", "--store", place.store] + options)
            let entries = try JSONSerialization.jsonObject(with: Data(run.output)) as? [[String: Any]]
            return (entries ?? []).compactMap { $0["key"] as? String }.sorted()
        }
        #expect(try keys("--host", "a.test") == ["http://a.test/1", "https://a.test:8443/2"])
        #expect(try keys("--host", "A.test", "--tag", "y") == ["https://a.test:8443/2"])
        #expect(try keys("--tag", "x", "--tag", "y") == ["https://a.test:8443/2"])
        #expect(try keys("--tag", "x", "--unpinned", "--except", "http://a.test/1") == ["https://a.test:8443/2"])
        #expect(try keys("--at-least", "1KB", "--prefix", "http://") == ["http://b.test/2"])
        #expect(try keys("--pinned", "--newer-than", "1h") == ["http://b.test/1"])
        #expect(try keys("--older-than", "1h").isEmpty)
        #expect(try keys("--session").isEmpty)
        #expect(try place.run("rm", "--host", "b.test", "--unpinned", "--json").json["removed"] as? Int == 1)
        #expect(try keys().count == 3)
    }

    @Test func bodiesInProgressAreListedWhereTheyAreAskedFor() throws {
        let place = try Workplace()
        try place.run("put", "whole", input: [1])
        do {
            let store = try Store(at: place.store)
            let writer = try store.partialWriter(for: "begun", total: 100_000)
            try writer.write([UInt8](repeating: 7, count: 5_000), at: 10_000)
            try writer.suspend()
            try store.close()
        }
        #expect(try place.run("ls").text.contains("begun") == false)
        let listed = try place.run("ls", "--incomplete").text
        #expect(listed.contains("begun") && !listed.contains("whole"))
        #expect(try place.run("get", "begun").status == 1)
        #expect(try place.run("rm", "--incomplete", "--json").json["removed"] as? Int == 1)
        #expect(try place.run("ls", "--incomplete").text == "")
        #expect(try place.run("verify").status == 0)
    }

    @Test func pinnedEntriesSayso() throws {
        let place = try Workplace()
        try place.run("put", "a", "--pin", input: [1])
        try place.run("put", "b", "--tag", "t", input: [2])
        #expect(try place.run("stat", "a", "--json").json["isPinned"] as? Bool == true)
        #expect(try place.run("pin", "--tag", "t", "--json").json["entries"] as? Int == 1)
        #expect(try place.run("stat", "b", "--json").json["isPinned"] as? Bool == true)
        #expect(try place.run("unpin", "a").status == 0)
        #expect(try place.run("unpin", "--tag", "t").status == 0)
        #expect(try place.run("ls", "--json").text.contains(#""isPinned":true"#) == false)
        #expect(try place.run("pin").status == 64)
    }
}
