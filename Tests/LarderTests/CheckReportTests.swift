import TestSupport
import Testing

@testable import Larder

@Suite struct CheckReportTests {
    @Test func aCleanReportHasNothingThatWasRepaired() throws {
        try withStore { store in
            try #expect(store.check().isRepaired == false)
            try #expect(store.check(repair: true).isRepaired == false)
        }
    }

    @Test func violationsWithoutATextCountToo() {
        var report = CheckReport()
        report.violationCount = CheckReport.violationLimit + 1
        report.repairedCount = CheckReport.violationLimit
        #expect(!report.isRepaired)
    }

    @Test func allOfManyViolationsAreRepaired() throws {
        try withStore { store in
            for number in 0..<1100 { try store.put([UInt8(number % 256)], for: Key("k\(number)")) }
            try store.flush()
            try store.engine.mutate(.housekeeping) { mutation in
                try mutation.transaction.removeAll(store.engine.index.recency)
                mutation.noteChange(trees: 1)
            }
            let found = try store.check(readingBodies: false)
            #expect(found.violationCount > CheckReport.violationLimit && !found.isRepaired)
            let repaired = try store.check(repair: true)
            #expect(repaired.violationCount == found.violationCount && repaired.repairedCount == found.violationCount)
            #expect(repaired.isRepaired && repaired.violations.allSatisfy(\.isRepaired))
        }
    }
}
