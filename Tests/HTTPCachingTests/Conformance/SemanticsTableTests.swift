import Foundation
import HTTPScenarios
import Testing

/// `docs/http-semantics.md` names files and tests that exist, and leaves no row open.
struct SemanticsTableTests {
    static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()

    /// The cells of all rows with six columns, heads and rulers left out.
    static func rows() throws -> [[String]] {
        let text = try String(contentsOf: root.appending(path: "docs/http-semantics.md"), encoding: .utf8)
        return text.split(separator: "\n").compactMap { line in
            guard line.hasPrefix("| ") else { return nil }
            let cells = line.split(separator: "|", omittingEmptySubsequences: false).dropFirst().dropLast()
                .map { $0.trimmingCharacters(in: .whitespaces) }
            return cells[0] == "section" ? nil : cells
        }
    }

    @Test func everyRequirementIsSettled() throws {
        let rows = try Self.rows()
        #expect(rows.count > 130)
        for row in rows {
            #expect(row.count == 6, "\(row)")
            let (level, file, test, state) = (row[1], row[3], row[4], row[5])
            #expect(state.hasPrefix("done") || state.hasPrefix("joining") || state.hasPrefix("not"), "\(row)")
            if state.hasPrefix("done") { #expect(!file.isEmpty || !test.isEmpty, "\(row)") }
            if level.contains("MUST") && state.hasPrefix("not") { #expect(state.hasPrefix("not applicable"), "\(row)") }
        }
    }

    @Test func filesAndTestsExist() throws {
        let sources = Self.root.appending(path: "Sources/HTTPCaching")
        let tests = Self.root.appending(path: "Tests")
        let paths =
            FileManager.default.enumerator(atPath: tests.path)?.compactMap { $0 as? String }.filter {
                $0.hasPrefix("HTTP") || $0.hasPrefix("LarderHTTP") || $0.hasPrefix("LarderGateway")
            }.filter { $0.hasSuffix(".swift") } ?? []
        let code = try paths.map { try String(contentsOf: tests.appending(path: $0), encoding: .utf8) }.joined()
        for row in try Self.rows() {
            for name in row[3].split(separator: ",").compactMap({ $0.split(separator: " ").first })
            where name.contains("/") {
                let path =
                    name.hasPrefix("R/")
                    ? "Rules/CacheRules+\(name.dropFirst(2)).swift"
                    : name.replacing("S/", with: "Syntax/").replacing("M/", with: "Model/") + ".swift"
                let alternative = path.replacing("CacheRules+", with: "")
                #expect(
                    FileManager.default.fileExists(atPath: sources.appending(path: path).path)
                        || FileManager.default.fileExists(atPath: sources.appending(path: alternative).path), "\(name)")
            }
            // Names of test functions stand in backquotes, names of scenarios in quotation marks; both may be cut
            // short.
            for (index, part) in row[4].split(separator: "`", omittingEmptySubsequences: false).enumerated()
            where index % 2 == 1 {
                #expect(code.contains("\(part.replacing("…", with: ""))"), "\(part)")
            }
            for (index, part) in row[4].split(separator: "\"", omittingEmptySubsequences: false).enumerated()
            where index % 2 == 1 {
                #expect(code.contains(part.replacing("…", with: "").trimmingCharacters(in: .whitespaces)), "\(part)")
            }
        }
    }
}
