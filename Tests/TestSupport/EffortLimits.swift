import Foundation
import SystemPackage
import Testing

/// Counts of work, as a program measured them.
public struct EffortCounts {
    /// What is counted, and of what.
    public struct Row: Hashable, Sendable, CustomStringConvertible {
        /// The operation, or the path of a request.
        public let path: String
        /// What is counted.
        public let metric: String

        /// `<path> <metric>`.
        public var description: String { "\(path) \(metric)" }
    }

    /// The counts.
    public private(set) var rows: [(row: Row, count: Double)] = []
    /// Why something could not be counted here.
    public private(set) var skipped: [String] = []
    /// True if the program came to its end.
    public private(set) var isComplete = false

    /// Counts of the test itself.
    public init(_ rows: [(path: String, metric: String, count: Double)]) {
        self.rows = rows.map { (Row(path: $0.path, metric: $0.metric), $0.count) }
        isComplete = true
    }

    /// Runs a program that the build put next to the tests, and reads `<path> <metric> <count>` lines.
    /// - Parameters:
    ///   - program: its name.
    ///   - arguments: what it gets.
    public init(of program: String, _ arguments: [String]) throws {
        let process = Process()
        let output = Pipe()
        process.executableURL = Worker.executable(program)
        process.arguments = arguments
        process.standardOutput = output
        try process.run()
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        #expect(process.terminationStatus == 0, "\(program) failed; it printed:\n\(text)")
        for line in text.split(separator: "\n") {
            let words = line.split(separator: " ")
            if line == "done" { isComplete = process.terminationStatus == 0 }
            if line.hasPrefix("skipped: ") { skipped.append(String(line.dropFirst(9))) }
            guard !line.hasPrefix("#"), words.count == 3, let count = Double(words[2]) else { continue }
            rows.append((Row(path: String(words[0]), metric: String(words[1])), count))
        }
        for reason in skipped { print("\(program) did not count everything: \(reason)") }
    }
}

/// The counts that a change may not leave, in a file: lines `<path> <metric> <count> <margin>`. A line that begins with
/// `#` is a comment.
public struct EffortLimits {
    private struct Limit {
        var count: Double
        var margin: Double
    }

    private let file: String
    private var lines: [(text: String, row: EffortCounts.Row?)] = []
    private var limits: [EffortCounts.Row: Limit] = [:]

    /// Reads a file.
    /// - Parameters:
    ///   - name: the file's name, in the directory `Effort` next to the test's source.
    ///   - source: the test's source.
    public init(_ name: String, nextTo source: String = #filePath) throws {
        file = FilePath(source).removingLastComponent().appending("Effort").appending(name).string
        for text in try String(contentsOfFile: file, encoding: .utf8).split(
            separator: "\n", omittingEmptySubsequences: false)
        {
            let words = text.split(separator: " ")
            guard !words.isEmpty, !text.hasPrefix("#") else {
                lines.append((String(text), nil))
                continue
            }
            guard words.count == 4, let count = Double(words[2]), let margin = Double(words[3]) else {
                Issue.record("\(file): '\(text)' is not '<path> <metric> <count> <margin>'")
                continue
            }
            let row = EffortCounts.Row(path: String(words[0]), metric: String(words[1]))
            #expect(limits[row] == nil, "\(file) has '\(row)' twice")
            limits[row] = Limit(count: count, margin: margin)
            lines.append((String(text), row))
        }
    }

    private static let command = "LARDER_EFFORT_UPDATE=1"

    /// Records an issue for each row that is not within its limit, in either direction, and for each that is measured
    /// and has none, or has one and is not measured. With `LARDER_EFFORT_UPDATE=1` in the environment, rewrites these
    /// rows of the file instead.
    /// - Parameters:
    ///   - counts: what was measured.
    ///   - isCounted: false for a row that this system cannot count.
    public mutating func compare(
        _ counts: EffortCounts, where isCounted: (EffortCounts.Row) -> Bool = { _ in true }
    ) throws {
        if ProcessInfo.processInfo.environment["LARDER_EFFORT_UPDATE"] == "1" { return try update(counts, isCounted) }
        for (row, count) in counts.rows {
            guard let limit = limits[row] else {
                Issue.record("\(file) has no limit for '\(row)', which is \(count); \(Self.command) adds it")
                continue
            }
            let (least, most) = (limit.count - limit.margin, limit.count + limit.margin)
            #expect(
                count <= most,
                """
                \(row) costs more: \(count), and the limit is \(most) (\(limit.count) + \(limit.margin) in \(file)). \
                If that is the price of something worth it, \(Self.command) notes it
                """)
            #expect(
                count >= least,
                """
                \(row) costs less: \(count), and \(limit.count) - \(limit.margin) was expected (\(file)). To keep what \
                was won, run this test with \(Self.command) and commit the file
                """)
        }
        let measured = Set(counts.rows.map(\.row))
        for row in limits.keys where isCounted(row) && !measured.contains(row) {
            Issue.record("'\(row)' of \(file) was not measured; \(Self.command) removes it")
        }
    }

    private func update(_ counts: EffortCounts, _ isCounted: (EffortCounts.Row) -> Bool) throws {
        let measured = Dictionary(uniqueKeysWithValues: counts.rows.map { ($0.row, $0.count) })
        var text = lines.compactMap { line -> String? in
            guard let row = line.row, let limit = limits[row] else { return line.text }
            guard let count = measured[row] else { return isCounted(row) ? nil : line.text }
            return abs(count - limit.count) <= limit.margin ? line.text : Self.line(row, count, limit.margin)
        }
        while text.last == "" { text.removeLast() }
        for (row, count) in counts.rows where limits[row] == nil {
            // Half an allocation, and a hundredth: see docs/testing.md.
            text.append(Self.line(row, count, max(0.5, (count / 10).rounded(.up) / 10)))
        }
        try (text.joined(separator: "\n") + "\n").write(toFile: file, atomically: true, encoding: .utf8)
        print("rewrote \(file)")
    }

    private static func line(_ row: EffortCounts.Row, _ count: Double, _ margin: Double) -> String {
        func padded(_ text: String, _ width: Int) -> String {
            text + String(repeating: " ", count: max(1, width - text.count))
        }
        return padded(row.path, 20) + padded(row.metric, 14) + padded(String(format: "%.2f", count), 12)
            + String(format: "%g", margin)
    }
}
