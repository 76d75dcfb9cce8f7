import ArgumentParser
import Foundation
import Larder
import SystemPackage
import TestSupport
import Testing

@testable import CachectlCore
@testable import cachectl

/// Options that select entries, on every command that takes them.
@Suite struct SelectionCommandTests {
    @Test(arguments: [
        ("tag=a", Selection.tag("a")), ("pinned", .pinned), ("not pinned", !.pinned), ("NOT Pinned", !.pinned),
        ("tag=a or tag=b and not pinned", .tag("a") || .tag("b") && !.pinned),
        ("(tag=a or tag=b) and not pinned", (.tag("a") || .tag("b")) && !.pinned),
        ("not (expired or incomplete)", !(.expired || .incomplete)), ("all", .all),
        ("key=\"a b\" or prefix=\"x (1)\"", .keys(["a b"]) || .prefix("x (1)")),
        ("tag=\"say \\\"or\\\"\"", .tag("say \"or\"")),
        ("host=h.example and at-least=10kB", .host("h.example") && .atLeast(ByteCount(10_000))),
        ("policy=session or version=2", .policy(.session) || .version("2")), ("tag=a=b", .tag("a=b")),
        ("unused-for=2s", .unusedSince(Timestamp(microseconds: 8_000_000))),
        (
            "older-than=10s or newer-than=1s",
            .storedBefore(Timestamp(microseconds: 0)) || .storedSince(Timestamp(microseconds: 9_000_000))
        ),
        ("not not tag=a", .tag("a")), ("\"tag\"=or", .tag("or")),
    ])
    func expressions(_ text: String, _ expected: Selection) throws {
        let now = Timestamp(microseconds: 10_000_000)
        #expect(try SelectionExpression.parse(text).selection(at: now) == expected)
    }

    @Test(arguments: [
        "", "and", "tag=", "tag=a tag=b", "(tag=a", "tag=a)", "not", "tag=a or", "color=red", "pinned=1",
        "older-than=7",
        "content=12", "policy=memory", "at-least=much", "key=\"a", "()", "\"pinned", "or tag=a",
        String(repeating: "(", count: 100_000), String(repeating: "not ", count: 100_000),
    ])
    func whatIsNoExpression(_ text: String) {
        #expect(throws: ValidationError.self) { try SelectionExpression.parse(text) }
    }

    private func filled() throws -> Workplace {
        let place = try Workplace()
        for (key, tags) in [("a/1", ["x"]), ("a/2", ["x", "y"]), ("b/1", ["y"]), ("b/2", [])] {
            _ = try CommandRun.cachectl(
                ["put", key, "--store", place.store] + tags.flatMap { ["--tag", $0] }, input: Array(key.utf8))
        }
        return place
    }

    private func keys(_ place: Workplace, _ options: [String]) throws -> [String] {
        let run = try CommandRun.cachectl(["ls", "--json", "--store", place.store] + options)
        let rows = try JSONSerialization.jsonObject(with: Data(run.output)) as? [[String: Any]] ?? []
        return rows.compactMap { $0["key"] as? String }.sorted()
    }

    @Test func lsTakesExpressions() throws {
        let place = try filled()
        #expect(try keys(place, ["--where", "tag=x or tag=y"]) == ["a/1", "a/2", "b/1"])
        #expect(try keys(place, ["--where", "tag=x and not tag=y"]) == ["a/1"])
        #expect(try keys(place, ["--prefix", "b/", "--where", "not tag=y"]) == ["b/2"])
        let digest = Digest.of(Array("b/2".utf8)).hexadecimal
        #expect(try keys(place, ["--content", digest]) == ["b/2"])
        #expect(try keys(place, ["--policy", "permanent"]).count == 4)
        #expect(try keys(place, ["--policy", "session"]) == [])
        #expect(try keys(place, ["--app-version", "1"]) == [])
    }

    @Test func otherCommandsTakeThem() throws {
        let place = try filled()
        #expect(try place.run("pin", "--where", "tag=x and tag=y", "--json").json["entries"] as? Int == 1)
        #expect(try keys(place, ["--pinned"]) == ["a/2"])
        #expect(try place.run("unpin", "--prefix", "a/", "--json").json["entries"] as? Int == 2)
        #expect(try keys(place, ["--pinned"]) == [])
        #expect(try place.run("touch", "--tag", "y", "--lifetime", "0s", "--json").json["touched"] as? Int == 2)
        #expect(try keys(place, ["--expired"]) == ["a/2", "b/1"])
        #expect(try place.run("lease", "--prefix", "b/", "--for", "1h", "--json").json["leases"] as? Int == 2)
        let tree = place.path.appending("tree").string
        #expect(
            try place.run("export", tree, "--where", "not expired and not key=b/2", "--json").json["files"] as? Int == 1
        )
        #expect(try place.run("rm", "--where", "tag=x or key=b/2", "--json").json["removed"] as? Int == 3)
        #expect(try keys(place, []) == ["b/1"])
    }

    /// A tag alone is pinned and leased itself: what is put later has it, too.
    @Test func aTagAloneIsPinned() throws {
        let place = try filled()
        try place.run("pin", "--tag", "x")
        try place.run("put", "later", "--tag", "x", input: [1])
        #expect(try keys(place, ["--pinned"]) == ["a/1", "a/2", "later"])
        try place.run("unpin", "--tag", "x")
        #expect(try keys(place, ["--pinned"]) == [])
    }

    /// Keys that are not UTF-8 would all become one.
    @Test func argumentsThatAreNotText() throws {
        let place = try Workplace()
        let script = "exec \"$0\" put \"$(printf '\\377')\" --store \"$1\""
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/bin/sh")
        process.arguments = ["-c", script, CommandRun.binary.path, place.store]
        let errors = Pipe()
        process.standardError = errors
        try process.run()
        let text = String(decoding: errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        #expect(process.terminationStatus == 64)
        #expect(text.contains("argument 2 is not valid UTF-8: '\\xff'"), "\(text)")
    }

    /// `put` reads from a pipe that no one closes: a signal ends it, and what was staged is gone.
    @Test(arguments: [SIGTERM, SIGINT]) func aSignalEndsAPut(_ number: Int32) throws {
        let place = try Workplace()
        try place.run("put", "k", input: [1])
        let input = Pipe()
        let process = Process()
        process.executableURL = CommandRun.binary
        process.arguments = ["put", "big", "-", "--store", place.store]
        process.standardInput = input
        process.standardError = FileHandle.nullDevice
        try process.run()
        // The program alone reads: if it ends, this fails, and does not wait.
        try input.fileHandleForReading.close()
        // More than a pipe holds: when this returns, the program has read, and its handlers are there.
        try input.fileHandleForWriting.write(contentsOf: Data(repeating: 7, count: 8 << 20))
        kill(process.processIdentifier, number)
        process.waitUntilExit()
        #expect(process.terminationReason == .exit && process.terminationStatus == 130)
        #expect(TestFiles.names(in: FilePath(place.store).appending("staging")) == [])
        #expect(try keys(place, []) == ["k"])
    }

    /// A FIFO that no one writes to is waited for where a signal is heard.
    @Test func aSignalEndsTheWaitForAFIFO() async throws {
        let place = try Workplace()
        try place.run("put", "k", input: [1])
        let fifo = place.path.appending("fifo").string
        #expect(mkfifo(fifo, 0o600) == 0)
        let staging = FilePath(place.store).appending("staging")
        let process = try CommandRun.start(["put", "big", fifo, "--store", place.store])
        // Once the store is open, the handlers are there.
        try await waitWhile { TestFiles.names(in: staging) == [] && process.isRunning }
        kill(process.processIdentifier, SIGTERM)
        await process.exit()
        #expect(process.terminationReason == .exit && process.terminationStatus == 130)
    }

    /// An option that is given twice selects what both select.
    @Test(arguments: [
        (["--where", "tag=x", "--where", "tag=y"], ["a/2"]), (["--prefix", "a/", "--prefix", "a/1"], ["a/1"]),
        (["--prefix", "a/", "--prefix", "b/"], []), (["--at-least", "1", "--at-least", "1GB"], []),
        (["--policy", "permanent", "--policy", "session"], []),
    ]) func givenTwice(arguments: [String], expected: [String]) throws {
        let place = try filled()
        #expect(try keys(place, arguments) == expected)
        let run = try CommandRun.cachectl(["rm", "--json", "--store", place.store] + arguments)
        #expect(run.json["removed"] as? Int == expected.count)
    }

    @Test func exceptionsAloneRemoveNothing() throws {
        let place = try filled()
        #expect(try place.run("rm", "--except", "a/1").status == 64)
        #expect(try place.run("ls", "--host", "https://a.example").status == 64)
        #expect(try place.run("rm", "--all", "--except", "a/1", "--json").json["removed"] as? Int == 3)
        #expect(try keys(place, []) == ["a/1"])
    }

    /// What stays pinned in another way is named.
    @Test func unpinningSaysWhatStays() throws {
        let place = try filled()
        #expect(try place.run("pin", "--tag", "x").text == "pinned the tag x, which 2 entries now have\n")
        #expect(try place.run("pin", "--tag", "later").text == "pinned the tag later, which 0 entries now have\n")
        let run = try place.run("unpin", "--prefix", "a/")
        #expect(
            run.text == "unpinned 2 entries\n" && run.errors.contains("2 entries stay pinned by a tag"), "\(run.errors)"
        )
        #expect(try place.run("unpin", "a/1").errors.contains("1 entry stays pinned by a tag"))
        _ = try place.run("unpin", "--tag", "x")
        #expect(try place.run("unpin", "a/1").errors.isEmpty)
    }
}
