import Foundation
import SystemPackage
import TestSupport

/// The built `cachectl`, run as a user would.
struct CommandRun {
    let status: Int32
    let output: [UInt8]
    let errors: String

    var text: String { String(decoding: output, as: UTF8.self) }

    /// Standard output as a JSON object.
    var json: [String: Any] {
        (try? JSONSerialization.jsonObject(with: Data(output)) as? [String: Any]) ?? [:]
    }

    /// Runs the program to its end.
    /// - Parameter environment: is added to that of the test.
    static func cachectl(
        _ arguments: [String], input: [UInt8]? = nil, environment: [String: String] = [:]
    ) throws -> CommandRun {
        let process = Process()
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        process.executableURL = binary
        process.arguments = arguments
        let directory = FileManager.default.temporaryDirectory
        // Files, because a pipe that is not read would block the program.
        let files = ["out", "err", "in"].map {
            directory.appendingPathComponent("cachectl-test-\(UUID().uuidString).\($0)")
        }
        defer { for file in files { try? FileManager.default.removeItem(at: file) } }
        try Data().write(to: files[0])
        try Data().write(to: files[1])
        try Data(input ?? []).write(to: files[2])
        process.standardOutput = try FileHandle(forWritingTo: files[0])
        process.standardError = try FileHandle(forWritingTo: files[1])
        process.standardInput = try FileHandle(forReadingFrom: files[2])
        try process.run()
        process.waitUntilExit()
        return CommandRun(
            status: process.terminationStatus, output: Array(try Data(contentsOf: files[0])),
            errors: String(decoding: try Data(contentsOf: files[1]), as: UTF8.self))
    }

    /// As the synchronous form, on a thread that may wait: for tests in which something else has to run meanwhile.
    static func cachectl(_ arguments: [String]) async throws -> CommandRun {
        try await withCheckedThrowingContinuation { continuation in
            DispatchQueue.global().async {
                continuation.resume(with: Result { try cachectl(arguments, input: nil) })
            }
        }
    }

    /// Starts the program; the caller waits for it.
    /// - Parameter prefix: a program, and its arguments, that starts it; none starts it itself.
    static func start(
        _ arguments: [String], prefix: [String] = [], output: FileHandle = .nullDevice, errors: FileHandle = .nullDevice
    ) throws -> Process {
        let process = Process()
        process.executableURL = prefix.first.map { URL(fileURLWithPath: $0) } ?? binary
        process.arguments = prefix.dropFirst() + arguments
        process.standardOutput = output
        process.standardError = errors
        try process.run()
        return process
    }

    /// The path of the program.
    static var path: String { binary.path }

    /// Where the build put the executable: beside the test bundle.
    static var binary: URL {
        #if os(macOS)
            let products = Bundle.allBundles.first { $0.bundlePath.hasSuffix(".xctest") }?.bundleURL
                .deletingLastPathComponent()
            return (products ?? Bundle.main.bundleURL).appendingPathComponent("cachectl")
        #else
            return Bundle.main.executableURL!.deletingLastPathComponent().appendingPathComponent("cachectl")
        #endif
    }
}

extension Process {
    /// Waits for the end without holding a thread that tasks or queues need. A termination handler that is set after
    /// the start may miss the end.
    func exit() async {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread { [self] in
                waitUntilExit()
                continuation.resume()
            }
        }
    }
}

/// A directory for one test, with a store in it.
final class Workplace: Sendable {
    let path: FilePath
    let store: String

    init() throws {
        path = temporaryStorePath()
        store = path.appending("store").string
        try FileManager.default.createDirectory(atPath: path.string, withIntermediateDirectories: true)
    }

    deinit { removeTree(path) }

    /// Runs a command on the store.
    @discardableResult
    func run(_ arguments: String..., input: [UInt8]? = nil) throws -> CommandRun {
        let split = arguments.firstIndex(of: "--") ?? arguments.count
        return try CommandRun.cachectl(
            Array(arguments[..<split]) + ["--store", store] + Array(arguments[split...]), input: input)
    }

    /// As the synchronous form, without holding a thread of the cooperative pool.
    func run(_ arguments: String...) async throws -> CommandRun {
        try await CommandRun.cachectl(arguments + ["--store", store])
    }

    /// Writes a file of the test's own.
    func file(_ name: String, _ bytes: [UInt8]) throws -> String {
        let file = path.appending(name)
        try FileManager.default.createDirectory(
            atPath: file.removingLastComponent().string, withIntermediateDirectories: true)
        try Data(bytes).write(to: URL(fileURLWithPath: file.string))
        return file.string
    }

    /// Path and bytes of every regular file below a directory of the test.
    func contents(of name: String, where isWanted: (String) -> Bool = { _ in true }) -> [String: Data] {
        var result: [String: Data] = [:]
        let root = path.appending(name).string
        for case let child as String in FileManager.default.enumerator(atPath: root) ?? .init() where isWanted(child) {
            if let data = FileManager.default.contents(atPath: root + "/" + child) { result[child] = data }
        }
        return result
    }
}
