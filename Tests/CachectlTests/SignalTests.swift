import Foundation
import SystemPackage
import TestSupport
import Testing

/// A signal while a command changes a store or writes files: it ends with 130, or with 0 if its work was done, and
/// leaves nothing that is half done.
@Suite struct SignalTests {
    private static let entries = 3_000
    private static let bigLength = 24 << 20

    /// Whether a process has a file of a folder open: its handlers are there then. proc(5); elsewhere the signal comes
    /// early, and may end the process itself.
    private static func hasOpen(_ process: Process, below folder: String) -> Bool {
        let place = "/proc/\(process.processIdentifier)/fd"
        guard let names = try? FileManager.default.contentsOfDirectory(atPath: place) else {
            return !FileManager.default.fileExists(atPath: "/proc/self/fd")
        }
        return names.contains {
            (try? FileManager.default.destinationOfSymbolicLink(atPath: "\(place)/\($0)"))?.hasPrefix(folder) == true
        }
    }

    @Test(arguments: [SIGINT, SIGTERM]) func everyCommandThatWrites(_ number: Int32) throws {
        let place = try Workplace()
        for index in 0..<Self.entries { _ = try place.file("tree/\(index)", Array("\(index)".utf8)) }
        let big = FilePath(try place.file("big", []))
        try #require(truncate(big.string, off_t(Self.bigLength)) == 0)
        let tree = place.path.appending("tree").string
        let copy = place.path.appending("copy")
        let output = place.path.appending("output")
        try #require(place.run("import", tree, "--base-url", "http://a.example/").status == 0)
        try #require(place.run("put", "big", big.string).status == 0)
        for command in [
            ["get", "big", "-o", output.string], ["export", copy.string],
            ["touch", "--prefix", "http:", "--lifetime", "1h"],
            ["pin", "--prefix", "http:"], ["unpin", "--prefix", "http:"],
            ["lease", "--prefix", "http:", "--for", "1h"],
            ["verify", "--repair"], ["gc"], ["budget", "--bytes", "100MB"], ["put", "other", big.string],
            ["import", tree, "--base-url", "http://b.example/"], ["rm", "--prefix", "http:"],
        ] {
            let process = try CommandRun.start(command + ["--store", place.store])
            blockWhile { process.isRunning && !Self.hasOpen(process, below: place.store) }
            kill(process.processIdentifier, number)
            process.waitUntilExit()
            #expect(process.terminationReason == .exit && [0, 130].contains(process.terminationStatus), "\(command)")
            #expect(TestFiles.names(in: FilePath(place.store).appending("staging")) == [], "\(command)")
            #expect(try place.run("verify").status == 0, "\(command)")
        }
        // A file is there whole, or it is not there.
        if let length = try? FileManager.default.attributesOfItem(atPath: output.string)[.size] as? Int {
            #expect(length == Self.bigLength)
        }
        for path in TestFiles.tree(copy) where !path.hasSuffix("big") {
            let bytes = try TestFiles.read(copy.appending(path))
            #expect(FilePath(path).lastComponent?.string == String(decoding: bytes, as: UTF8.self), "\(path)")
        }
        #expect(TestFiles.names(in: place.path).allSatisfy { !$0.hasPrefix("output.") && !$0.hasPrefix(".output") })
    }
}
