import Foundation
import HTTPScenarios
import Testing

/// `docs/http-semantics.md` names files and tests that exist, and leaves no row open.
struct SemanticsTableTests {
    static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()

    /// The folders of `Sources` that the first letter of a file's name stands for.
    static let folders: [Substring: [String]] = [
        "R": ["HTTPCaching/Rules"], "S": ["HTTPCaching/Syntax"], "M": ["HTTPCaching/Model"], "L": ["LarderHTTP"],
        "W": ["HTTPWire"], "N": ["LarderNIOTransport"], "G": ["LarderServer", "LarderGateway"],
    ]

    /// Whether a file named as in the table, such as `R/Storing` or `G/Tunnel`, is in one of its folders or below.
    static func exists(_ name: Substring) -> Bool {
        let parts = name.split(separator: "/")
        guard parts.count == 2, let folders = folders[parts[0]] else { return false }
        let names = ["\(parts[1]).swift", "CacheRules+\(parts[1]).swift"]
        return folders.contains { folder in
            let files = FileManager.default.enumerator(atPath: root.appending(path: "Sources/\(folder)").path)
            return files?.contains { names.contains(URL(filePath: "\($0)").lastPathComponent) } ?? false
        }
    }

    /// The cells of all rows of requirements, heads and rulers left out. Other tables, which explain, have fewer
    /// columns.
    static func rows() throws -> [[String]] {
        let text = try String(contentsOf: root.appending(path: "docs/http-semantics.md"), encoding: .utf8)
        return text.split(separator: "\n").compactMap { line in
            guard line.hasPrefix("| ") else { return nil }
            let cells = line.split(separator: "|", omittingEmptySubsequences: false).dropFirst().dropLast()
                .map { $0.trimmingCharacters(in: .whitespaces) }
            return cells[0] == "section" || cells.count == 2 ? nil : cells
        }
    }

    @Test func everyRequirementIsSettled() throws {
        let rows = try Self.rows()
        #expect(rows.count > 200)
        for row in rows {
            #expect(row.count == 6, "\(row)")
            let (level, file, test, state) = (row[1], row[3], row[4], row[5])
            #expect(state.hasPrefix("done") || state.hasPrefix("not"), "\(row)")
            if state.hasPrefix("done") { #expect(!file.isEmpty || !test.isEmpty, "\(row)") }
            if level.contains("MUST") && state.hasPrefix("not") { #expect(state.hasPrefix("not applicable"), "\(row)") }
        }
    }

    @Test func filesAndTestsExist() throws {
        let tests = Self.root.appending(path: "Tests")
        let paths =
            FileManager.default.enumerator(atPath: tests.path)?.compactMap { $0 as? String }.filter { path in
                ["HTTP", "LarderHTTP", "LarderGateway", "LarderNIOTransport"].contains { path.hasPrefix($0) }
            }.filter { $0.hasSuffix(".swift") } ?? []
        let code = try paths.map { try String(contentsOf: tests.appending(path: $0), encoding: .utf8) }.joined()
        // Not in '#expect' itself, which would print all of the code.
        func isInCode(_ text: String) -> Bool { code.contains(text) }
        for row in try Self.rows() {
            for name in row[3].split(separator: ",").compactMap({ $0.split(separator: " ").first })
            where name.contains("/") {
                #expect(Self.exists(name), "\(name)")
            }
            // Names of test functions stand in backquotes, names of scenarios in quotation marks; both may be cut
            // short.
            for (index, part) in row[4].split(separator: "`", omittingEmptySubsequences: false).enumerated()
            where index % 2 == 1 {
                #expect(isInCode("\(part.replacing("…", with: ""))"), "\(part)")
            }
            for (index, part) in row[4].split(separator: "\"", omittingEmptySubsequences: false).enumerated()
            where index % 2 == 1 {
                #expect(isInCode(part.replacing("…", with: "").trimmingCharacters(in: .whitespaces)), "\(part)")
            }
        }
    }
}
