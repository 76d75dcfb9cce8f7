import Foundation
import SystemPackage
import TestSupport
import Testing

@testable import CachectlCore
@testable import CachectlDemo
@testable import cachectl

@Suite struct ProgramTests {
    @Test(arguments: [
        ["stat", "--stor", "x"], ["frob"], ["gc", "--budget", "10XB"], ["put"], ["rm", "--older-than", "7 parsecs"],
        ["ls", "--sort", "colour"], ["ls", "--limit", "0"], ["budget", "--bytes", "100KB"],
        ["budget", "--entries", "many"],
        ["put", "k", "--budget", "-5"], ["touch", "k", "--lifetime", "soon"], ["completions", "tcsh"],
        ["stat", "--store", ""],
        ["import", "x", "--tag", "larder:x"], ["import", "x", "--tag", ""],
        ["put", "k", "/dev/null", "--tag", "larder:x"],
        ["serve", "--keep-field", "Vary"], ["serve", "--keep-field", "cache-control"],
        ["import", "x", "--workers", "99"], ["demo", "--seconds", "0"], ["put", "", "/dev/null"],
    ])
    func wrongCommandLinesExitWith64(arguments: [String]) throws {
        let place = try Workplace()
        let named = arguments.contains("--store") ? [] : ["--store", place.store]
        let run = try CommandRun.cachectl(arguments + named)
        #expect(run.status == 64)
        #expect(run.errors.hasPrefix("cachectl: "))
        #expect(run.output.isEmpty)
    }

    /// SIGUSR1 is for `serve`: `pkill -USR1 cachectl` must not end a command that is running on the side.
    @Test func aSignalToReopenLogsDoesNotEndACommand() throws {
        let place = try Workplace()
        let input = Pipe()
        let process = Process()
        process.executableURL = URL(filePath: CommandRun.path)
        process.arguments = ["put", "key", "--store", place.store]
        process.standardInput = input
        process.standardOutput = FileHandle.nullDevice
        try process.run()
        // More than a pipe holds: when it is written, the command is reading.
        try input.fileHandleForWriting.write(contentsOf: Data(body(1 << 20)))
        kill(process.processIdentifier, SIGUSR1)
        try input.fileHandleForWriting.close()
        process.waitUntilExit()
        #expect(process.terminationReason == .exit && process.terminationStatus == 0)
    }

    @Test func commandsOnWhatIsNotThereExitWith66AndMakeNothing() throws {
        let place = try Workplace()
        for command in [
            ["stat"], ["ls"], ["get", "k"], ["rm", "k"], ["touch", "k"], ["pin", "k"], ["gc"], ["verify"],
            ["verify", "--repair"], ["budget"], ["export", place.path.appending("out").string],
        ] {
            #expect(try CommandRun.cachectl(command + ["--store", place.store]).status == 66)
        }
        #expect(try place.run("put", "k", "/nonexistent/file").status == 66)
        #expect(try FileManager.default.contentsOfDirectory(atPath: place.path.string).isEmpty)
    }

    @Test func pathsThatCannotBeAStore() throws {
        let place = try Workplace()
        let file = try place.file("file", [1])
        #expect(try CommandRun.cachectl(["put", "k", "--store", file]).status == 73)
        _ = try place.file("foreign/data", [1])
        let run = try CommandRun.cachectl(["put", "k", "--store", place.path.appending("foreign").string])
        #expect(run.status == 65 && run.errors.contains("is not a Larder store"))
        #expect(try place.run("put", "k", input: [1]).status == 0)
        #expect(try place.run("get", "k", "-o", "/nonexistent/dir/file").status == 73)
    }

    @Test func errorsAreJSONWhereAskedFor() throws {
        let run = try CommandRun.cachectl(["stat", "--json", "--store", "/nonexistent"])
        let json = try JSONSerialization.jsonObject(with: Data(run.errors.utf8)) as? [String: [String: Any]]
        #expect(json?["error"]?["exitCode"] as? Int == 66)
        #expect(Set(json?["error"]?.keys.map(\.self) ?? []) == ["code", "exitCode", "message", "path", "key", "cause"])
    }

    @Test func errorsAsJSONNameThePathAndTheKeyAndAreShort() throws {
        func error(_ run: CommandRun) throws -> [String: Any] {
            let json = try JSONSerialization.jsonObject(with: Data(run.errors.utf8)) as? [String: [String: Any]]
            return try #require(json?["error"])
        }
        let place = try Workplace()
        #expect(try error(place.run("stat", "--json"))["path"] as? String == place.store)
        #expect(try error(place.run("put", "k", "/none", "--json"))["path"] as? String == "/none")
        try place.run("put", "a", input: [1])
        #expect(try error(place.run("get", "x", "--json"))["key"] as? String == "x")
        #expect(
            try error(place.run("rm", "--json"))["message"] as? String == "Give KEY, --all, or options that select "
                + "entries, such as --prefix or --tag.")
    }

    @Test func wrongWordsAreExplained() throws {
        for (arguments, text) in [
            (["lst", "--store", "x"], "there is no command 'lst': did you mean 'ls'?"),
            (["--store", "x y", "ls", "--json"], "options follow the command: cachectl ls --store 'x y' --json"),
            (["remove", "k"], "did you mean 'rm'?"), (["help", "nope"], "there is no command 'nope'"),
        ] {
            let run = try CommandRun.cachectl(arguments)
            #expect(run.status == 64 && run.output.isEmpty)
            #expect(run.errors.contains(text), "\(run.errors)")
        }
        #expect(try CommandRun.cachectl(["help", "stat"]).text.hasPrefix("OVERVIEW: Show the size"))
    }

    @Test func helpSaysWhatIsTrue() throws {
        let root = try CommandRun.cachectl(["--help"]).text
        for status in ["69", "70", "141"] { #expect(root.contains(" \(status) ")) }
        for command in ["demo", "bench"] {
            let help = try CommandRun.cachectl([command, "--help"]).text
            #expect(help.contains("temporary") && !help.contains("platform's cache"))
        }
        #expect(try CommandRun.cachectl(["bench", "--help"]).text.contains("32MiB"))
        #expect(try !CommandRun.cachectl(["completions", "--help"]).text.contains("--store"))
    }

    /// The remedy is the repair, not another directory.
    @Test func aDamagedFormatFileIsNamedAsSuch() throws {
        let place = try Workplace()
        try place.run("put", "a", input: [1])
        try Data("larder\nformat x".utf8).write(to: URL(fileURLWithPath: place.store + "/FORMAT"))
        for command in [["stat"], ["get", "a"], ["put", "b", "/dev/null"], ["verify"]] {
            let run = try CommandRun.cachectl(command + ["--store", place.store])
            #expect(run.status == 65 && run.errors.contains("verify --repair"), "\(run.errors)")
            #expect(!run.errors.contains("another directory") && !run.errors.contains("remove"))
        }
        #expect(try place.run("verify", "--repair").status == 1)
        #expect(try place.run("get", "a").output == [1])
        // The same of one that is gone.
        try FileManager.default.removeItem(atPath: place.store + "/FORMAT")
        let gone = try place.run("stat")
        #expect(gone.status == 65 && gone.errors.contains("verify --repair"), "\(gone.errors)")
        #expect(try place.run("verify", "--repair").status == 1)
        #expect(try place.run("get", "a").output == [1])
    }

    /// The superuser may read everything.
    @Test(.enabled(if: geteuid() != 0)) func aSourceThatCannotBeReadIsNotTakenForAFileOfTheStore() throws {
        let place = try Workplace()
        let file = try place.file("tree/secret", [1])
        try FileManager.default.setAttributes([.posixPermissions: 0], ofItemAtPath: file)
        let run = try place.run("import", place.path.appending("tree").string)
        #expect(run.status == 1 && run.errors.contains("no permission to read \(file)"), "\(run.errors)")
    }

    @Test(arguments: ["bash", "zsh", "fish"])
    func completionScriptsNameEveryCommand(shell: String) throws {
        let script = try CommandRun.cachectl(["completions", shell]).text
        for command in ["gc", "stat", "verify", "import", "demo"] { #expect(script.contains(command)) }
        // Values: policies, orders, forms and levels of the logs.
        for value in ["do-not-read", "common", "warning"] { #expect(script.contains(value)) }
    }

    @Test func benchFiguresHaveTheirKeys() throws {
        let run = try CommandRun.cachectl(["bench", "--volume", "64KiB", "--json"])
        let list = try JSONSerialization.jsonObject(with: Data(run.output)) as? [[String: Any]]
        #expect(run.status == 0 && list?.count == 12)
        let keys: Set = ["operation", "bodyBytes", "count", "storePerSecond", "filesPerSecond", "ratio"]
        #expect(list.map { Set($0[0].keys) } == keys)
    }

    @Test func demoKeepsItsPromises() throws {
        let place = try Workplace()
        var random = RandomBytes(seed: 5)
        for index in 0..<120 { _ = try place.file("tree/\(index % 7)/\(index)", random.bytes(1000 + index * 1500)) }
        // A busy machine needs longer to fill the budget.
        var (seconds, json) = (2, [String: Any]())
        while json["hits"] as? Int ?? 0 == 0 || json["displacedEntries"] as? Int ?? 0 == 0 {
            let run = try CommandRun.cachectl([
                "demo", place.path.appending("tree").string, "--seconds", "\(seconds)", "--json", "--store",
                place.store,
            ])
            try #require(run.status == 0, "\(run.errors)")
            (seconds, json) = (seconds * 2, run.json)
        }
        #expect(json["wrongBodies"] as? Int == 0)
        #expect(json["allocatedBytes"] as? Int == json["recountedBytes"] as? Int)
        #expect((json["highestBytes"] as? Int ?? .max) <= (json["budgetBytes"] as? Int ?? 0))
        #expect(try place.run("verify").status == 0)
    }

    #if os(Linux)
        @Test func helpThatCannotBeWrittenIsAnError() throws {
            let full = try #require(FileHandle(forWritingAtPath: "/dev/full"))
            let process = try CommandRun.start(["--help"], output: full)
            process.waitUntilExit()
            #expect(process.terminationStatus == 71)
        }
    #endif

    @Test func everythingWorksOnAStoreThatOthersUse() throws {
        let place = try Workplace()
        var random = RandomBytes(seed: 6)
        for index in 0..<150 { _ = try place.file("tree/\(index)", random.bytes(1000 + index * 1500)) }
        let demo = try CommandRun.start([
            "demo", place.path.appending("tree").string, "--seconds", "3600", "--store", place.store,
        ])
        defer { demo.terminate() }
        try blockWhile { try place.run("stat", "--json").json["entryCount"] as? Int ?? 0 < 10 }
        for round in 0..<3 {
            for command in [
                ["gc", "--compact"], ["verify"], ["put", "k\(round)", "/etc/passwd", "--pin"], ["get", "k\(round)"],
                ["ls"],
            ] {
                let run = try CommandRun.cachectl(command + ["--store", place.store])
                #expect(run.status == 0, "\(command): \(run.text) \(run.errors)")
            }
            #expect(recount(FilePath(place.store)) <= 6 << 20)
        }
        // The terminal is closed. What nohup(1) starts, as it may have started these tests, does not hear of that.
        kill(demo.processIdentifier, SignalHandler.isIgnored(SIGHUP) ? SIGTERM : SIGHUP)
        demo.waitUntilExit()
        #expect(demo.terminationStatus == 130)
        #expect(try place.run("verify").status == 0)
    }
}
