import Foundation
import SystemPackage
import TestOrigin
import TestSupport
import Testing

/// The options of the commands for packages, as users give them.
@Suite struct PackageOptionTests {
    private static let tool = FilePath(#filePath).removingLastComponent().removingLastComponent()
        .removingLastComponent().appending("tools/afcpkg.py").string

    private func archive(_ place: Workplace, _ options: String...) throws -> String {
        _ = try place.file("tree/x", Array("content".utf8))
        let archive = place.path.appending("p.zip").string
        let tree = place.path.appending("tree").string
        try #require(
            CommandRun.cachectl(["package", "create", "--folder", tree, "-o", archive] + options).status == 0)
        return archive
    }

    /// The line ends of other systems do not belong to a password.
    @Test func passwordFiles() throws {
        let place = try Workplace()
        let windows = try place.file("windows", Array("secret\r\nmore".utf8))
        let archive = try archive(place, "--password-file", windows)
        for text in ["secret\n", "secret", "secret\r\n"] {
            let file = try place.file("file", Array(text.utf8))
            #expect(try place.run("package", "install", archive, "--password-file", file, "--restore").status == 0)
        }
        let other = try place.file("file", Array("secret \n".utf8))
        #expect(try place.run("package", "install", archive, "--password-file", other, "--restore").status == 77)
        for text in ["", "\n", "\r\nsecret"] {
            let file = try place.file("file", Array(text.utf8))
            #expect(try place.run("package", "install", archive, "--password-file", file).status == 65)
        }
    }

    @Test func exportTakesItsFileAsInstallDoes() throws {
        let place = try Workplace()
        try #require(place.run("package", "install", archive(place)).status == 0)
        let output = place.path.appending("out.zip").string
        let run = try place.run("package", "export", output, "--all", "--json")
        #expect(run.status == 0 && run.json["archive"] as? String == output && run.json["name"] as? String == "out")
        #expect(FileManager.default.fileExists(atPath: output))
        #expect(try place.run("package", "export", output, "--all", "-o", output).status == 64)
    }

    @Test func limits() throws {
        let place = try Workplace()
        let archive = try archive(place)
        for option in ["--max-members", "--max-bytes"] {
            let run = try place.run("package", "install", archive, option, "1")
            #expect(run.status == 65 && run.errors.contains("p.zip"), "\(run.errors)")
        }
        #expect(try place.run("package", "install", archive, "--max-ratio", "0").status == 64)
        #expect(try place.run("package", "install", archive, "--max-members", "-1").status == 64)
        // 80 MB of zeros.
        let zeros = FilePath(try place.file("zeros/z", []))
        try #require(truncate(zeros.string, 80_000_000) == 0)
        let folder = zeros.removingLastComponent().string
        try #require(CommandRun.cachectl(["package", "create", "--folder", folder, "-o", archive]).status == 0)
        let refused = try place.run("package", "install", archive)
        #expect(refused.status == 65 && refused.errors.contains("100 times"), "\(refused.errors)")
        #expect(try place.run("package", "install", archive, "--max-ratio", "2000").status == 0)
    }

    /// A URL that is not one costs nothing but itself, and an archive of nothing is not written.
    @Test func urlsThatAreNotValid() async throws {
        try await withOrigin { origin, place in
            let output = place.path.appending("out.zip").string
            let address = "\(origin.url)/a"
            let run = try await place.run(
                "package", "create", "--from-cache", "--url", "htp:/x", "--url", address, "--url", "http://h:x/", "-o",
                output, "--json")
            #expect(run.status == 0 && run.json["members"] as? Int == 1, "\(run.errors)")
            #expect(Set((run.json["skipped"] as? [String: String] ?? [:]).keys) == ["htp:/x", "http://h:x/"])
            let before = try TestFiles.read(FilePath(output))
            let none = try await place.run("package", "create", "--from-cache", "--url", "htp:/x", "-o", output)
            #expect(none.status == 1 && none.errors.contains("htp:/x"))
            #expect(try TestFiles.read(FilePath(output)) == before)
        }
    }

    /// The cause of an error is that of the system, in its words.
    @Test func aFolderThatIsNotThere() throws {
        let place = try Workplace()
        let missing = place.path.appending("none").string
        let run = try CommandRun.cachectl([
            "package", "create", "--folder", missing, "-o", place.path.appending("p.zip").string,
        ])
        #expect(run.status == 66)
        #expect(run.errors == "cachectl: \(missing): the folder cannot be read (No such file or directory)\n")
    }

    /// What no one reads is not a reason for a trace of Python.
    @Test(arguments: [[], ["--json"]]) func aClosedPipe(_ options: [String]) throws {
        let place = try Workplace()
        _ = try place.file("tree/x", Array("content".utf8))
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["python3", Self.tool, "--folder", "tree", "-o", "p.zip"] + options
        process.currentDirectoryURL = URL(fileURLWithPath: place.path.string)
        let (output, errors) = (Pipe(), Pipe())
        try output.fileHandleForReading.close()
        (process.standardOutput, process.standardError) = (output, errors)
        try process.run()
        let text = String(decoding: errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        #expect(process.terminationStatus == 141 && text.isEmpty, "\(text)")
        #expect(FileManager.default.fileExists(atPath: place.path.appending("p.zip").string))
    }
}
