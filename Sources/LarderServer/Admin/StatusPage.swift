import Larder

/// The page for people: the figures that matter, and how they went lately.
enum StatusPage {
    static func html(_ counters: ServerCounters, _ statistics: Statistics?, _ intervals: [TrafficHistory.Interval])
        -> String
    {
        let answered = counters.answers.dropLast().reduce(0, +)
        let hits = counters.answers[0] + counters.answers[2] + counters.answers[3]
        var rows = [
            ("Requests", "\(counters.total)"),
            ("Hit ratio", answered == 0 ? "–" : percent(Double(hits) / Double(answered))),
            ("Hits", "\(counters.answers[0])"), ("From the origin", "\(counters.answers[1])"),
            ("Revalidated", "\(counters.answers[2])"), ("Stale", "\(counters.answers[3])"),
            ("Instead of an error", "\(counters.answers[4])"), ("Upstream errors", "\(counters.upstreamErrors)"),
            ("Open connections", "\(counters.connectionsOpen)"),
            ("Bytes sent", "\(ByteCount(Int64(clamping: counters.bytesOut)))"),
        ]
        if let statistics {
            rows.append(("Stored responses", "\(statistics.entryCount)"))
            let limit = statistics.budget.bytes == .unlimited ? "" : " of \(statistics.budget.bytes)"
            rows.append(("On disk", "\(statistics.allocatedBytes)" + limit))
            rows.append(("In memory", "\(statistics.memoryTier.bytes)"))
        }
        let table = rows.map { "<tr><th>\($0.0)</th><td>\($0.1)</td></tr>" }.joined(separator: "\n")
        let rates = intervals.map { Double($0.requests) / Double(TrafficHistory.intervalSeconds) }
        let ratios = intervals.map { $0.requests == 0 ? nil : Double($0.hits) / Double($0.requests) }
        let peak = rates.max() ?? 0
        return """
            <!DOCTYPE html>
            <html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="5"><title>Larder gateway</title>
            <style>
            body { font: 15px/1.4 system-ui, sans-serif; margin: 2rem auto; max-width: 46rem; padding: 0 1rem; }
            table { border-collapse: collapse; } th { text-align: left; font-weight: normal; padding-right: 2rem; }
            td { text-align: right; font-variant-numeric: tabular-nums; } svg { width: 100%; height: auto; }
            polyline { fill: none; stroke: #06c; stroke-width: 1.5; stroke-linecap: round; } rect { fill: #8881; }
            </style></head><body>
            <h1>Larder gateway</h1>
            <table>
            \(table)
            </table>
            <h2>Requests a second <small>(highest: \(rounded(peak)))</small></h2>
            \(plot(rates, highest: peak))
            <h2>Hit ratio <small>(0 to 100 %)</small></h2>
            \(plot(ratios, highest: 1))
            <p><small>The last \(TrafficHistory.capacity * TrafficHistory.intervalSeconds / 60) minutes. \
            Figures for machines: <a href="/metrics">/metrics</a>.</small></p>
            </body></html>

            """
    }

    /// A line through the values, interrupted where there is none.
    private static func plot(_ values: [Double?], highest: Double) -> String {
        let width = Double(TrafficHistory.capacity * 2)
        let height = 120.0
        let start = width - Double(max(values.count - 1, 0)) * 2
        var lines = ""
        for part in values.indices.split(whereSeparator: { values[$0] == nil }) {
            let points = part.map { index in
                let value = values[index] ?? 0
                let y = highest > 0 ? height - value / highest * (height - 4) - 2 : height - 2
                return "\(rounded(start + Double(index) * 2)),\(rounded(y))"
            }
            // A line of one point is not drawn.
            let line = points.count == 1 ? [points[0], points[0]] : points
            lines += "<polyline points=\"\(line.joined(separator: " "))\"/>"
        }
        return "<svg viewBox=\"0 0 \(Int(width)) \(Int(height))\" role=\"img\"><rect width=\"\(Int(width))\" "
            + "height=\"\(Int(height))\"/>\(lines)</svg>"
    }

    private static func percent(_ value: Double) -> String { "\(rounded(value * 100)) %" }

    /// One digit behind the point.
    private static func rounded(_ value: Double) -> String {
        let tenths = Int64((value * 10).rounded())
        return "\(tenths / 10).\(abs(tenths % 10))"
    }
}
