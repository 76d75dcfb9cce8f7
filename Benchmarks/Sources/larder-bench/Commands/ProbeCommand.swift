import ArgumentParser
import Foundation
import Larder
import SystemPackage

/// `probe`: the memory of a process that only uses a store. The targets run it as a separate process.
struct ProbeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "probe", abstract: "Use a store for a while and print the process's memory.", shouldDisplay: false)

    /// What it prints.
    struct Answer: Codable {
        var gets: Int
        var puts: Int
        /// Nil if the kernel does not report it.
        var anonymousBytes: Int64?
    }

    @Option var store: String
    @Option var entries: Int
    @Option var seed: UInt64

    func run() throws {
        let peer = try LarderPeer(FilePath(store))
        var generator = Generator(seed: seed)
        var answer = Answer(gets: 200_000, puts: 20_000)
        // Names and bodies are made one at a time: prepared ones would be the larger part of the memory.
        for _ in 0..<answer.gets {
            let name = peer.name(Int(generator.next() % UInt64(entries)) * 2)
            guard try peer.store.get(name.key) != nil else { throw BenchError("\(name.key) is not there") }
        }
        for _ in 0..<answer.puts {
            let name = peer.name(Int(generator.next() % UInt64(entries)) * 2 + 1)
            try peer.put(withUnsafeBytes(of: generator.next()) { Array($0) }, name)
        }
        try peer.settle()
        answer.anonymousBytes = ProcessFigures.anonymousBytes()
        try peer.close()
        print(try JSONOutput.text(answer))
    }

    /// Runs `probe` in a separate process.
    static func measure(_ path: FilePath, entries: Int, seed: UInt64) throws -> Answer {
        let output = try Subprocess.run(
            Subprocess.ownExecutable,
            ["probe", "--store", path.string, "--entries", "\(entries)", "--seed", "\(seed)"])
        return try JSONDecoder().decode(Answer.self, from: output)
    }
}
