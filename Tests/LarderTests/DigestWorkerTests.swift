import CLarder
import Foundation
import TestSupport
import Testing

@testable import Larder

/// The thread that hashes bodies beside their callers.
@Suite struct DigestWorkerTests {
    private struct Nothing: DigestWork {
        func run() {}
    }

    @Test func itTakesWorkWhereThereIsAnotherProcessor() {
        // Its thread refers to it as long as the process runs.
        let worker = Unmanaged.passRetained(DigestWorker { 2 }).takeUnretainedValue()
        #expect(worker.accept(Nothing(), bytes: 1))
    }

    @Test func aSingleProcessorHashesInTheCaller() {
        let worker = DigestWorker { 1 }
        #expect(!worker.accept(Nothing(), bytes: 1))
        #expect(!worker.accept(Nothing(), bytes: 1))
        #expect(!worker.hasRoom(for: 1))
        #expect(worker.digest(of: body(64 << 10, 1)).value == Digest.of(body(64 << 10, 1)))
    }

    #if os(Linux)
        /// nproc(1).
        @Test func theProcessorsAreThoseThatOtherProgramsSee() throws {
            let (nproc, output) = (Process(), Pipe())
            nproc.executableURL = URL(fileURLWithPath: "/usr/bin/nproc")
            nproc.environment = [:]
            nproc.standardOutput = output
            try nproc.run()
            let printed = try output.fileHandleForReading.readToEnd() ?? Data()
            nproc.waitUntilExit()
            let count = Int(String(decoding: printed, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines))
            #expect(Int(clarder_processors()) == count)
        }
    #endif
}
