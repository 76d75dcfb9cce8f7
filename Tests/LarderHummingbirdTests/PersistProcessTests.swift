import Foundation
import Hummingbird
import Larder
import LarderHummingbird
import SystemPackage
import TestSupport
import Testing

/// Drivers in several processes.
struct PersistProcessTests {
    /// A `LarderPersistWorker` process.
    private final class PersistWorker {
        private let process = Process()
        private let input = Pipe()
        private let output = Pipe()

        init(_ store: FilePath, _ name: String, _ count: Int) throws {
            process.executableURL = Worker.executable("LarderPersistWorker")
            process.arguments = [store.string, name, "\(count)"]
            process.standardInput = input
            process.standardOutput = output
            try process.run()
        }

        /// The next line; what came before its process ended.
        func line() -> String {
            var text = ""
            while let byte = output.fileHandleForReading.readData(ofLength: 1).first, byte != UInt8(ascii: "\n") {
                text.append(Character(Unicode.Scalar(byte)))
            }
            return text
        }

        func start() { input.fileHandleForWriting.write(Data("\n".utf8)) }

        /// SIGKILL.
        func kill() {
            #if canImport(Glibc)
                _ = Glibc.kill(process.processIdentifier, SIGKILL)
            #else
                _ = Foundation.kill(process.processIdentifier, SIGKILL)
            #endif
            process.waitUntilExit()
        }
    }

    /// Each key has one creator, whose value stays; no value is lost when the processes are killed.
    @Test func oneOfTwoProcessesCreates() async throws {
        let count = 300
        try await withDirectory { path in
            let workers = try ["one", "two"].map { try PersistWorker(path.appending("store"), $0, count) }
            for worker in workers { #expect(worker.line() == "ready") }
            for worker in workers { worker.start() }
            let created = workers.compactMap { Int($0.line()) }
            #expect(created.reduce(0, +) == count, "\(created)")
            for worker in workers { worker.kill() }

            let store = try Store(at: path.appending("store"), .testing())
            let driver = LarderPersistDriver(store)
            var values = ["one": 0, "two": 0]
            for number in 0..<count {
                let value = try #require(await driver.get(key: "\(number)", as: String.self))
                values[value, default: 0] += 1
                await #expect(throws: PersistError.duplicate) { try await driver.create(key: "\(number)", value: "x") }
            }
            #expect([values["one"], values["two"]] == created)
            try finish(store)
        }
    }
}
