import Foundation
import SeededData
import SystemPackage
import Testing

/// Short runs of the decoders that `tools/fuzz` fuzzes for long: its seeds and findings, and mutations of good inputs.
public enum FuzzRuns {
    /// Mutations in a run: 500, or what `LARDER_FUZZ_ROUNDS` says.
    public static var rounds: Int {
        ProcessInfo.processInfo.environment["LARDER_FUZZ_ROUNDS"].flatMap(Int.init) ?? 500
    }

    /// Seed of a random test: `LARDER_SEED`, or a random one. Printed, so that a run can be repeated.
    public static func seed(_ test: String) -> UInt64 {
        let seed =
            ProcessInfo.processInfo.environment["LARDER_SEED"].flatMap(UInt64.init) ?? UInt64.random(in: 0..<1_000_000)
        print("\(test): LARDER_SEED=\(seed)")
        return seed
    }

    /// The files in `Fuzz/corpus/TARGET`: at least four.
    public static func corpus(_ target: String) throws -> [[UInt8]] {
        var folder = FilePath(#filePath)
        for _ in 0..<3 { folder.removeLastComponent() }
        folder.append("Fuzz/corpus/\(target)")
        let inputs = try TestFiles.tree(folder).map { try TestFiles.read(folder.appending($0)) }
        try #require(inputs.count >= 4, "there are too few inputs in \(folder)")
        return inputs
    }

    /// Decodes mutations of the inputs in turn. Records the first error, with all that repeats it.
    public static func decode(
        mutationsOf inputs: [[UInt8]], _ test: String, rounds: Int = rounds, _ decoder: ([UInt8]) throws -> Void
    ) {
        let seed = seed(test)
        var generator = SeededGenerator(seed: seed)
        for round in 0..<rounds {
            let input = mutation(of: inputs[round % inputs.count], using: &generator)
            do {
                try decoder(input)
            } catch {
                Issue.record("\(test): seed \(seed), round \(round), input \(input): \(error)")
                return
            }
        }
    }
}
