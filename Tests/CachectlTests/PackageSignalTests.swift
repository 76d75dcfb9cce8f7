import Foundation
import SystemPackage
import TestSupport
import Testing

/// A signal in the middle of a command that writes packages: it ends with 130, and leaves what was there before.
@Suite struct PackageSignalTests {
    /// Long enough for a signal to find the program at work. Random bytes do not get shorter when they are packed.
    private static let length = 48 << 20

    private static func noise(_ count: Int) -> Data {
        var generator = SystemRandomNumberGenerator()
        let piece = (0..<(1 << 17)).map { _ in generator.next() }.withUnsafeBytes { Data($0) }
        var data = Data(capacity: count)
        while data.count < count { data += piece.prefix(count - data.count) }
        return data
    }

    /// The files of an archive: itself, and what libzip writes beside it.
    private func archives(_ place: Workplace) -> [String] {
        TestFiles.names(in: place.path).filter { $0.hasPrefix("p.zip") }.sorted()
    }

    /// Waits until libzip writes, and sends a signal.
    private func interrupt(_ process: Process, _ number: Int32, in place: Workplace) throws {
        blockWhile { process.isRunning && archives(place).allSatisfy { $0 == "p.zip" } }
        kill(process.processIdentifier, number)
        process.waitUntilExit()
        #expect(process.terminationReason == .exit && process.terminationStatus == 130)
    }

    @Test(arguments: [SIGINT, SIGTERM]) func creating(_ number: Int32) throws {
        let place = try Workplace()
        // Zeros: no disk, and some seconds.
        let file = FilePath(try place.file("tree/big", []))
        try #require(truncate(file.string, 1 << 30) == 0)
        let archive = try place.file("p.zip", Array("the archive before".utf8))
        let process = try CommandRun.start([
            "package", "create", "--folder", file.removingLastComponent().string, "-o", archive,
        ])
        try interrupt(process, number, in: place)
        #expect(archives(place) == ["p.zip"])
        #expect(try TestFiles.read(FilePath(archive)) == Array("the archive before".utf8))
    }

    /// One archive for both: `install` is interrupted, then it runs to its end, and `export` is interrupted.
    @Test(arguments: [SIGINT, SIGTERM]) func installingAndExporting(_ number: Int32) throws {
        let place = try Workplace()
        let file = FilePath(try place.file("tree/big", []))
        try Self.noise(Self.length).write(to: URL(fileURLWithPath: file.string))
        let archive = place.path.appending("source.zip").string
        let folder = file.removingLastComponent().string
        try #expect(
            CommandRun.cachectl(["package", "create", "--folder", folder, "-o", archive, "--name", "p"]).status == 0)
        try #expect(place.run("put", "k", archive).status == 0)

        let staging = FilePath(place.store).appending("staging")
        let install = try CommandRun.start(["package", "install", archive, "--store", place.store])
        blockWhile { install.isRunning && TestFiles.names(in: staging) == [] }
        kill(install.processIdentifier, number)
        install.waitUntilExit()
        #expect(install.terminationReason == .exit && install.terminationStatus == 130)
        #expect(TestFiles.names(in: staging) == [])
        let listed = try place.run("ls", "--all").text
        #expect(!listed.contains("larder:install") && !listed.contains("localhost"))
        try #expect(place.run("package", "show", "p").status == 1)

        try #expect(place.run("package", "install", archive).status == 0)
        let export = try CommandRun.start([
            "package", "export", "--all", place.path.appending("p.zip").string, "--store", place.store,
        ])
        try interrupt(export, number, in: place)
        #expect(archives(place) == [])
        try #expect(place.run("verify").status == 0)
    }

    /// An origin that does not answer.
    @Test(arguments: ["fetch", "package"], [SIGINT, SIGTERM]) func waiting(_ command: String, _ number: Int32)
        async throws
    {
        let place = try Workplace()
        let origin = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(origin) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        try withUnsafeMutablePointer(to: &address) {
            try $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                try #require(bind(origin, $0, size) == 0 && listen(origin, 8) == 0)
                try #require(getsockname(origin, $0, &size) == 0)
            }
        }
        let url = "http://127.0.0.1:\(UInt16(bigEndian: address.sin_port))/x"
        let output = place.path.appending("p.zip").string
        let process = try CommandRun.start(
            (command == "fetch" ? ["fetch", url] : ["package", "create", "--from-cache", "--url", url])
                + ["-o", output, "--store", place.store])
        // Once it has connected, it is waiting.
        blockWhile {
            var one = pollfd(fd: origin, events: Int16(POLLIN), revents: 0)
            return process.isRunning && poll(&one, 1, 0) == 0
        }
        kill(process.processIdentifier, number)
        process.waitUntilExit()
        #expect(process.terminationReason == .exit && process.terminationStatus == 130)
        #expect(archives(place) == [])
        #expect(TestFiles.names(in: FilePath(place.store).appending("staging")) == [])
    }

    /// A removal that is stopped anywhere is finished by the next command.
    @Test(arguments: [SIGINT, SIGTERM]) func removing(_ number: Int32) throws {
        let place = try Workplace()
        for index in 0..<2_000 { _ = try place.file("tree/\(index)", Array("\(index)".utf8)) }
        let archive = place.path.appending("source.zip").string
        let folder = place.path.appending("tree").string
        try #expect(
            CommandRun.cachectl(["package", "create", "--folder", folder, "-o", archive, "--name", "p"]).status == 0)
        try #expect(place.run("package", "install", archive).status == 0)
        let process = try CommandRun.start(["package", "remove", "p", "--store", place.store])
        // Any moment after its handlers are there is right: it has opened the store then.
        blockWhile { process.isRunning && !Self.hasOpen(process, below: place.store) }
        kill(process.processIdentifier, number)
        process.waitUntilExit()
        #expect(process.terminationReason == .exit && [0, 130].contains(process.terminationStatus))
        try #expect(place.run("gc").status == 0)
        let shown = try place.run("package", "show", "p")
        let verified = try place.run("package", "verify", "p")
        #expect(shown.status == 1 || verified.status == 0)
        try #expect(place.run("verify").status == 0)
    }

    /// Whether a process has a file of a folder open. proc(5); elsewhere true, and the signal comes early.
    private static func hasOpen(_ process: Process, below folder: String) -> Bool {
        let place = "/proc/\(process.processIdentifier)/fd"
        guard let names = try? FileManager.default.contentsOfDirectory(atPath: place) else {
            return !FileManager.default.fileExists(atPath: "/proc/self/fd")
        }
        return names.contains {
            (try? FileManager.default.destinationOfSymbolicLink(atPath: "\(place)/\($0)"))?.hasPrefix(folder) == true
        }
    }
}
