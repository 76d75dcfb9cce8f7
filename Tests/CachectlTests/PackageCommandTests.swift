import Foundation
import SystemPackage
import TestSupport
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Packages as their users have them: archives of other programs, processes that are killed.
@Suite struct PackageCommandTests {
    private static let root = FilePath(#filePath).removingLastComponent().removingLastComponent()
        .removingLastComponent()

    private func system(_ arguments: [String], in folder: FilePath) throws -> Int32 {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = arguments
        process.currentDirectoryURL = URL(fileURLWithPath: folder.string)
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        return process.terminationStatus
    }

    /// Runs a command with `--json`, whose output goes to a file, in the directory of a test.
    private func system(_ arguments: [String], _ output: String, _ place: Workplace) throws -> [String: Any] {
        let shell = arguments.map { "'" + $0.replacing("'", with: "'\\''") + "'" }.joined(separator: " ")
        #expect(try system(["sh", "-c", shell + " --json >" + output], in: place.path) == 0)
        let data = try #require(FileManager.default.contents(atPath: place.path.appending(output).string))
        return try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
    }

    private func python(_ program: String, _ arguments: [String], in folder: FilePath) throws -> Int32 {
        try system(["python3", "-c", program] + arguments, in: folder)
    }

    private func member(_ name: String, _ archive: String, _ place: Workplace) throws -> Data {
        let program = "import sys,zipfile;open(sys.argv[3],'wb').write(zipfile.ZipFile(sys.argv[1]).read(sys.argv[2]))"
        let target = place.path.appending("member").string
        #expect(try python(program, [archive, name, target], in: place.path) == 0)
        return try #require(FileManager.default.contents(atPath: target))
    }

    /// The same options give the same manifests.
    @Test(arguments: [
        ["--max-age", "100"], ["--form", "3", "--no-mime", "--last-modified-file"],
        ["--form", "5", "--zone-offset", "--max-age", "9", "-a"],
        ["--baseurl", "https://A.example:8443/x%20y/", "--maxage", "5", "--lastmodifiedminus", "70"],
        ["--exclude", "*.txt", "--max-item-size", "50", "--no-list"],
        ["--mime-map", "TYPES", "--user-data", "tree/img", "--user-data-key", "k", "--package-version", "ü \"1\""],
    ]) func twoToolsOneManifest(_ options: [String]) throws {
        let place = try Workplace()
        for (name, length) in [
            ("index.html", 10), ("img/a b.PNG", 100), ("img/ü&;=.txt", 5), (".hidden/x", 1), ("q?x#y", 2), ("noext", 0),
        ] {
            _ = try place.file("tree/" + name, [UInt8](repeating: 65, count: length))
        }
        let types = try place.file("types", Array("own/type html\n".utf8))
        let options =
            ["--folder", "tree", "--created", "1700000000", "--name", "p"]
            + options.map { $0 == "TYPES" ? types : $0 }
        let tool = Self.root.appending("tools/afcpkg.py").string
        let first = try system([CommandRun.path, "package", "create", "-o", "1.zip"] + options, "1.json", place)
        let second = try system(["python3", tool, "-o", "2.zip"] + options, "2.json", place)
        #expect(first["resources"] as? NSArray == second["resources"] as? NSArray)
        #expect(first["bytes"] as? Int == second["bytes"] as? Int && first["bytes"] != nil)
        let (one, two) = (place.path.appending("1.zip").string, place.path.appending("2.zip").string)
        let manifest = try member("manifest.afcache", one, place)
        #expect(try !manifest.isEmpty && manifest == member("manifest.afcache", two, place))
        if !options.contains("--no-list") {
            #expect(try member("larder.members", one, place) == member("larder.members", two, place))
        }
        for archive in [one, two] {
            let store = try Workplace()
            #expect(try store.run("package", "install", archive).status == 0)
            #expect(try store.run("package", "verify", "p", "--deep").status == (options.contains("--no-list") ? 1 : 0))
            #expect(try store.run("verify").status == 0)
        }
    }

    /// What an archive of files alone says, made by a program that does not know packages.
    @Test func filesOfOtherPrograms() throws {
        let place = try Workplace()
        _ = try place.file("tree/www.example.com/a/b c.css", Array("css".utf8))
        let program = "import shutil;shutil.make_archive('plain','zip','tree')"
        #expect(try python(program, [], in: place.path) == 0)
        #expect(try place.run("package", "install", place.path.appending("plain.zip").string).status == 0)
        let answer = try place.run("fetch", "--offline", "-i", "https://www.example.com/a/b%20c.css")
        #expect(answer.text.contains("Content-Type: text/css") && answer.text.hasSuffix("css"))
        // And what reads ours.
        #expect(try place.run("package", "export", "--all", "-o", place.path.appending("out.zip").string).status == 0)
        let reading = "import zipfile;assert zipfile.ZipFile('out.zip').testzip() is None"
        #expect(try python(reading, [], in: place.path) == 0)
    }

    @Test func passwordsAndKeys() throws {
        let place = try Workplace()
        _ = try place.file("tree/x", Array("secret content".utf8))
        let password = try place.file("password", Array("pass word\n".utf8))
        let archive = place.path.appending("p.zip").string
        let tree = place.path.appending("tree").string
        #expect(
            try CommandRun.cachectl([
                "package", "create", "--folder", tree, "-o", archive, "--password-file", password,
            ]).status == 0)
        let refused = try place.run("package", "install", archive)
        #expect(refused.status == 77 && refused.errors.contains("p.zip"))
        let wrong = try place.file("wrong", Array("x\n".utf8))
        #expect(try place.run("package", "install", archive, "--password-file", wrong).status == 77)
        #expect(try place.run("package", "install", archive, "--password-file", password).status == 0)
        #expect(try place.run("fetch", "--offline", "http://localhost/x").text == "secret content")
        let broken = try place.run("package", "install", archive, "--trust", password)
        #expect(broken.status == 65)
        #expect(try place.run("package", "verify", "none").status == 1)
        #expect(try place.run("package", "install", place.path.appending("none.zip").string).status == 66)
    }

    /// Kills the program at many moments, and looks at what readers find then and after the next command.
    @Test func killsDuringAnUpgrade() throws {
        let place = try Workplace()
        let generate = """
            import sys, zipfile
            for version in (1, 2):
                with zipfile.ZipFile("%d.zip" % version, "w") as archive:
                    lines = []
                    for number in range(3000):
                        name = "a.example/%d" % number
                        archive.writestr(name, "%d %d" % (version, number))
                        lines.append("http://%s ; Tue, %02d Feb 2022 00:00:00 GMT ; NULL" % (name, version))
                    archive.writestr("manifest.afcache", "\\n".join(lines))
            """
        #expect(try python(generate, [], in: place.path) == 0)
        let archives = (1...2).map { place.path.appending("\($0).zip").string }
        #expect(try place.run("package", "install", archives[0], "--name", "p").status == 0)
        for round in 0..<10 {
            let process = try CommandRun.start([
                "package", "install", archives[1], "--name", "p", "--store", place.store,
            ])
            // Any moment is right, and on a busy machine it is another one.
            usleep(useconds_t(20_000 + 60_000 * round))
            kill(process.processIdentifier, SIGKILL)
            process.waitUntilExit()
            let answers = try [0, 1_500, 2_999].map {
                try place.run("fetch", "--offline", "http://a.example/\($0)").text.prefix(1)
            }
            #expect(Set(answers).count == 1, "round \(round): \(answers)")
            #expect(try place.run("gc").status == 0)
            #expect(try place.run("verify").status == 0)
            let listed = try place.run("ls", "--all").text
            #expect(!listed.contains("larder:install") && !listed.contains(" package="))
            #expect(try place.run("package", "verify", "p", "--deep").status == 0)
            let after = try place.run("fetch", "--offline", "http://a.example/7").text.prefix(1)
            #expect(after == answers[0])
            if after == "2" {
                #expect(
                    try place.run("package", "install", archives[0], "--name", "p", "--conflicts", "replace").status
                        == 0)
            }
        }
        #expect(try place.run("package", "install", archives[1], "--name", "p").status == 0)
        #expect(try place.run("fetch", "--offline", "http://a.example/2999").text == "2 2999")
    }

    /// Another process reads while a package is upgraded: once it has seen the new version of one member, it sees that
    /// of every other.
    @Test func readersOfAnotherProcess() async throws {
        let place = try Workplace()
        for version in 1...2 {
            for number in 0..<1_000 {
                _ = try place.file("\(version)/\(number)", Array("\(version)".utf8))
            }
            let archive = place.path.appending("\(version).zip").string
            let folder = place.path.appending("\(version)").string
            try await #expect(
                CommandRun.cachectl([
                    "package", "create", "--folder", folder, "-o", archive, "--base-url", "http://a.example", "--name",
                    "p", "--max-age", "3600",
                ]).status == 0)
        }
        try await #expect(place.run("package", "install", place.path.appending("1.zip").string).status == 0)
        let gateway = try await RunningGateway(place, "--origin", "http://127.0.0.1:9")
        let upgrade = try CommandRun.start([
            "package", "install", place.path.appending("2.zip").string, "--store", place.store,
        ])
        var hasSeenNew = false
        var count = 0
        while upgrade.isRunning || count < 200 {
            let number = (count * 37) % 1_000
            let url = try #require(URL(string: "\(gateway.address)/\(number)"))
            var request = URLRequest(url: url)
            request.setValue("a.example", forHTTPHeaderField: "Host")
            let answer = String(decoding: try await URLSession.shared.data(for: request).0, as: UTF8.self)
            try #require(answer == "2" || (answer == "1" && !hasSeenNew), "\(answer)")
            if answer == "2" { hasSeenNew = true }
            count += 1
        }
        #expect(hasSeenNew)
        upgrade.waitUntilExit()
        #expect(upgrade.terminationStatus == 0)
        gateway.signal(SIGTERM)
        #expect(try await gateway.end() == 0)
    }
}
