import Foundation
import TestSupport
import Testing

/// `cachectl serve`, or another server, while a test talks to it.
final class RunningGateway {
    let process: Process
    /// The line it prints when it is ready.
    let ready: [String: Any]
    private let errorFile: String

    var address: String { ready["address"] as? String ?? "" }

    /// What it has written to standard error.
    var errors: String { String(decoding: FileManager.default.contents(atPath: errorFile) ?? Data(), as: UTF8.self) }

    /// Starts it on a free port and waits until it answers.
    /// - Parameters:
    ///   - command: `serve`, or another with the same flags.
    ///   - prefix: a program, and its arguments, that starts it.
    convenience init(
        _ place: Workplace, _ arguments: String..., command: String = "serve", prefix: [String] = []
    ) async throws {
        try await self.init(place, arguments: arguments, command: command, prefix: prefix)
    }

    init(_ place: Workplace, arguments: [String], command: String = "serve", prefix: [String] = []) async throws {
        let output = try place.file("serve.out", [])
        errorFile = try place.file("serve.err", [])
        let process = try CommandRun.start(
            [command, "--listen", "127.0.0.1:0", "--store", place.store, "--json"] + arguments, prefix: prefix,
            output: try FileHandle(forWritingTo: URL(fileURLWithPath: output)),
            errors: try FileHandle(forWritingTo: URL(fileURLWithPath: errorFile)))
        self.process = process
        var found: [String: Any]?
        try await waitWhile {
            let isRunning = process.isRunning
            let text = FileManager.default.contents(atPath: output) ?? Data()
            found = try? JSONSerialization.jsonObject(with: text) as? [String: Any]
            return found == nil && isRunning
        }
        ready = try #require(
            found, "\(String(decoding: FileManager.default.contents(atPath: errorFile) ?? Data(), as: UTF8.self))")
    }

    deinit { process.terminate() }

    /// Sends a signal.
    func signal(_ number: Int32) { kill(process.processIdentifier, number) }

    /// Waits until it says so on standard error.
    /// - Parameter count: how often.
    func waitUntilItSays(_ text: String, count: Int = 1) async throws {
        func isMissing() -> Bool { errors.ranges(of: text).count < count }
        try await waitWhile { process.isRunning && isMissing() }
        #expect(!isMissing(), "\(errors)")
    }

    /// Waits for the end; returns the exit status.
    func end() async throws -> Int32 {
        await process.exit()
        return process.terminationStatus
    }
}
