import Foundation
import Larder
import TestSupport
import Testing

@testable import LarderServer

/// The page for people.
struct StatusPageTests {
    @Test func theHitRatioHasNoPointWhereNothingWasAsked() {
        let intervals = [(10, 5), (0, 0), (0, 0), (4, 4), (2, 1)].map {
            TrafficHistory.Interval(requests: UInt64($0.0), hits: UInt64($0.1))
        }
        let page = StatusPage.html(ServerCounters(), nil, intervals)
        let chart = page.components(separatedBy: "<h2>Hit ratio").last ?? ""
        // One point, a gap, two points; a point at 0 % would lie at 118.
        #expect(chart.components(separatedBy: "<polyline").count == 3)
        #expect(!chart.contains(",118.0"))
        let rates = page.components(separatedBy: "<h2>Hit ratio").first ?? ""
        #expect(rates.components(separatedBy: "<polyline").count == 2)
    }

    @Test func sizesAreThoseThatWereSet() throws {
        try withStore(configuration: .testing(budget: Budget(bytes: .megabytes(100)))) { store in
            let statistics = try store.statistics()
            let page = StatusPage.html(ServerCounters(), statistics, [])
            #expect(page.contains("<td>\(statistics.allocatedBytes) of 100 MB</td>") && !page.contains("iB"))
        }
    }
}
