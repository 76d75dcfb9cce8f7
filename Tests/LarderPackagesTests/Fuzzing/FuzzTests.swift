import Foundation
import SeededData
import SystemPackage
import TestSupport
import Testing

/// Mutations of good inputs, and what `tools/fuzz` starts from and has found.
struct FuzzTests {
    /// A decoder; its inputs stand in `Fuzz/corpus`, under its name.
    enum Decoder: String, CaseIterable {
        case manifests, archives

        func callAsFunction(_ input: [UInt8]) throws {
            switch self {
            case .manifests: try PackageDecoders.manifest(input)
            case .archives: try PackageDecoders.archive(input)
            }
        }

        func inputs() throws -> [[UInt8]] {
            var corpus = FilePath(#filePath)
            for _ in 0..<4 { corpus.removeLastComponent() }
            corpus.append("Fuzz/corpus/\(rawValue)")
            return try TestFiles.tree(corpus).map { try TestFiles.read(corpus.appending($0)) }
        }
    }

    @Test(arguments: Decoder.allCases) func theCorpusIsTaken(_ decoder: Decoder) throws {
        let inputs = try decoder.inputs()
        #expect(inputs.count >= 4)
        for input in inputs { try decoder(input) }
    }

    @Test(arguments: Decoder.allCases) func noMutationTraps(_ decoder: Decoder) throws {
        let seed =
            ProcessInfo.processInfo.environment["LARDER_SEED"].flatMap(UInt64.init) ?? UInt64.random(in: 0..<1_000_000)
        print("noMutationTraps \(decoder): LARDER_SEED=\(seed)")
        var generator = SeededGenerator(seed: seed)
        let inputs = try decoder.inputs()
        for round in 0..<2_000 {
            let input = mutation(of: inputs[round % inputs.count], using: &generator)
            do {
                try decoder(input)
            } catch {
                Issue.record("seed \(seed), round \(round), input \(input): \(error)")
                return
            }
        }
    }
}
