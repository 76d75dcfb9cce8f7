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
    }

    @Test(arguments: Decoder.allCases) func theCorpusIsTaken(_ decoder: Decoder) throws {
        for input in try FuzzRuns.corpus(decoder.rawValue) { try decoder(input) }
    }

    @Test(arguments: Decoder.allCases) func noMutationTraps(_ decoder: Decoder) throws {
        try FuzzRuns.decode(mutationsOf: FuzzRuns.corpus(decoder.rawValue), "noMutationTraps \(decoder)") {
            try decoder($0)
        }
    }
}
