import Foundation
import TestSupport
import Testing

/// What a person at a terminal gets: the real program on a pseudo-terminal.
struct TerminalTests {
    /// A pseudo-terminal: openpty(3).
    private final class Terminal {
        let program: FileHandle
        private let screen: Int32

        init() throws {
            var descriptors: (screen: Int32, program: Int32) = (-1, -1)
            try #require(openpty(&descriptors.screen, &descriptors.program, nil, nil, nil) == 0)
            screen = descriptors.screen
            program = FileHandle(fileDescriptor: descriptors.program, closeOnDealloc: true)
        }

        deinit { close(screen) }

        /// What was written to it, up to now.
        func shown() -> String {
            var polled = pollfd(fd: screen, events: Int16(POLLIN), revents: 0)
            var bytes = [UInt8](repeating: 0, count: 4_096)
            var text = ""
            while poll(&polled, 1, 0) == 1, polled.revents & Int16(POLLIN) != 0 {
                let count = read(screen, &bytes, bytes.count)
                if count <= 0 { break }
                text += String(decoding: bytes[..<count], as: UTF8.self)
            }
            return text
        }

        func type(_ text: String) { _ = write(screen, text, text.utf8.count) }
    }

    private func run(
        _ place: Workplace, _ arguments: [String], on terminal: Terminal
    ) throws -> (status: Int32, errors: String) {
        let errors = try place.file("errors", [])
        let process = Process()
        process.executableURL = URL(fileURLWithPath: CommandRun.path)
        process.arguments = arguments + ["--store", place.store]
        process.standardInput = terminal.program
        process.standardOutput = terminal.program
        process.standardError = try FileHandle(forWritingTo: URL(fileURLWithPath: errors))
        try process.run()
        process.waitUntilExit()
        let text = FileManager.default.contents(atPath: errors) ?? Data()
        return (process.terminationStatus, String(decoding: text, as: UTF8.self))
    }

    @Test func bytesThatAreNotTextStayAwayFromATerminal() throws {
        let place = try Workplace()
        try place.run("put", "text", input: Array("grüße\n".utf8))
        try place.run("put", "binary", input: [0x1B, 0x5B, 0x32, 0x4A, 0])
        let terminal = try Terminal()
        #expect(try run(place, ["get", "text"], on: terminal).status == 0)
        #expect(terminal.shown() == "grüße\r\n")
        let refused = try run(place, ["get", "binary"], on: terminal)
        #expect(refused.status == 64 && refused.errors.contains("-o FILE") && terminal.shown().isEmpty)
        #expect(try run(place, ["get", "binary", "-o", "-"], on: terminal).status == 0)
        #expect(terminal.shown().contains("\u{1B}[2J"))
        // Not a terminal: as ever.
        #expect(try place.run("get", "binary").output == [0x1B, 0x5B, 0x32, 0x4A, 0])
    }

    @Test func putSaysThatItReadsTheTerminal() throws {
        let place = try Workplace()
        let terminal = try Terminal()
        terminal.type("typed\n\u{4}")
        let put = try run(place, ["put", "k"], on: terminal)
        #expect(put.status == 0 && put.errors.contains("until Ctrl-D"), "\(put.errors)")
        #expect(try place.run("get", "k").text == "typed\n")
        #expect(try place.run("put", "k", input: [1]).errors.isEmpty)
    }
}
