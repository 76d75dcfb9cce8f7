import CLarderInterface
import Larder
import SeededData
import SystemPackage
import TestSupport
import Testing

@testable import LarderC

/// Calls of the C interface in any order. The C interface itself is tested from C: `tools/c-test`.
@Suite(.serialized) struct CallSequenceTests {
    /// Inputs that `tools/fuzz calls` starts from, and those it has found.
    @Test func inputsOfTheCorpusLeaveAWholeStore() throws {
        var corpus = FilePath(#filePath)
        for _ in 0..<3 { corpus.removeLastComponent() }
        corpus.append("Fuzz/corpus/calls")
        let names = TestFiles.tree(corpus)
        #expect(!names.isEmpty)
        for name in names { try run(TestFiles.read(corpus.appending(name))) }
    }

    @Test func randomCallsLeaveAWholeStore() throws {
        var generator = SeededGenerator(seed: 5)
        for _ in 0..<60 {
            try run((0..<200).map { _ in UInt8.random(in: 0...255, using: &generator) })
        }
    }

    private func run(_ input: [UInt8]) throws {
        try withDirectory { path in try CallSequence.run(input, in: path.appending("store").string) }
    }
}

/// The codes of both interfaces are the same.
@Suite struct StatusTests {
    @Test func everyCodeHasItsStatusAndItsName() {
        var seen: Set<Int32> = []
        for (code, status) in LarderError.statuses {
            #expect(seen.insert(status.rawValue).inserted)
            let name = String(cString: larder_status_name(status))
            #expect(name.lowercased().replacing("_", with: "") == code.description.lowercased())
        }
        #expect(seen == Set((-18)...(-1)))
    }
}
