import Foundation
import Larder
import TestSupport
import Testing

/// What operations cost, as counts: a change that makes the hot path allocate, call the system or write more fails
/// here, on any machine. The bounds are what was counted when they were set, and a little room.
struct EffortTests {
    /// Runs `LarderEffort`, and checks the store it leaves.
    private func figures(isSecondTry: Bool = false) throws -> [String: Double] {
        let (status, lines) = try withDirectory { directory in
            let path = directory.appending("store")
            let process = Process()
            let output = Pipe()
            process.executableURL = Worker.executable("LarderEffort")
            process.arguments = [path.string]
            process.standardOutput = output
            try process.run()
            let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
            process.waitUntilExit()
            let store = try Store(at: path, .testing())
            try finish(store)
            return (process.terminationStatus, text.split(separator: "\n").map { $0.split(separator: " ") })
        }
        // A hit that meets the committer at a lock waits for it, by a system call: rare, and not what this is about.
        if status != 0, !isSecondTry { return try figures(isSecondTry: true) }
        #expect(status == 0, "a warm hit made a system call, or failed, twice; it printed: \(lines)")
        return Dictionary(
            uniqueKeysWithValues: lines.compactMap { $0.count == 2 ? (String($0[0]), Double($0[1]) ?? -1) : nil })
    }

    /// Allocations of one hit: its body.
    private static let bounds = ["get": 1.1, "withBody": 0.1, "contains": 0.1, "miss": 0.1]

    @Test func warmHitsNeitherAllocateMuchNorCallTheSystemAndPutsWriteLittleMoreThanTheirBytes() throws {
        let figures = try figures()
        for (operation, bound) in Self.bounds {
            if let allocations = figures["allocations.\(operation)"] {
                #expect(allocations <= bound, "allocations of \(operation)")
            }
        }
        #if os(Linux)
            for operation in Self.bounds.keys where figures["allocations.get"] != nil {
                #expect(figures["silent.\(operation)"] == 1, "system calls of \(operation)")
            }
            // Records, page headers and what a commit copies: a page or so for a small body, nothing to speak of for a
            // file.
            for (size, bound) in [1 << 10: 2.5, 16 << 10: 1.6, 1 << 20: 1.1] {
                let written = try #require(figures["written.\(size)"])
                #expect(written >= 1, "bodies of \(size) bytes")
                #expect(written <= bound, "bodies of \(size) bytes")
            }
        #endif
    }
}
