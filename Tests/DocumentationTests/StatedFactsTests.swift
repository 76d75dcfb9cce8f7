import Foundation
import Testing

@testable import Larder

/// Versions and limits that the documents and scripts state are those of the code.
struct StatedFactsTests {
    @Test func documentsNameTheFormatVersion() throws {
        let version = FormatFile.currentVersion
        #expect(try Documents.text("README.md").contains("on-disk format \(version)."))
        #expect(try Documents.text("CHANGELOG.md").contains("On-disk format: \(version)."))
        #expect(try Documents.text("docs/format.md").contains("\nformat \(version)\n"))
        #expect(try Documents.text("docs/recovery.md").contains("`format \(version)`"))
    }

    @Test func everyPlaceNamesTheSameSwiftVersion() throws {
        let version = try #require(try Self.toolsVersion("Package.swift"))
        for script in ["README.md", "tools/setup"] {
            #expect(try Documents.text(script).contains("Swift \(version) or later"), "\(script) names another Swift")
        }
        for package in ["Benchmarks", "Examples", "Fuzz", "Tests/Packages/EngineOnly", "Tests/Packages/HTTPCacheOnly"] {
            #expect(try Self.toolsVersion(package + "/Package.swift") == version, "\(package) names another Swift")
        }
    }

    @Test func readmeNamesThePlatformsOfTheManifest() throws {
        let manifest = try Documents.text("Package.swift")
        let platforms = try #require(manifest.firstMatch(of: /\.macOS\(\.v(\d+)\), \.iOS\(\.v(\d+)\)/))
        let readme = try Documents.text("README.md")
        #expect(readme.contains("macOS \(platforms.1) and later") && readme.contains("iOS \(platforms.2)"))
    }

    @Test func readmeNamesTheOldestLMDB() throws {
        let check = try #require(try Documents.text("tools/setup").firstMatch(of: /--atleast-version=([\d.]+) lmdb/))
        #expect(try Documents.text("README.md").contains("LMDB (\(check.1) or later"))
    }

    @Test func documentsNameTheLimitOfTouches() throws {
        var table = TouchTable()
        var highest = 0
        for stamp in 1...UInt64(2 * TouchTable.limit) {
            table.note(stamp: stamp, uptime: stamp)
            highest = max(highest, table.count)
        }
        let limit = highest.formatted(.number.locale(Locale(identifier: "en_US")))
        #expect(try Documents.text("docs/decisions/store.md").contains("at most \(limit) entries"))
        #expect(try Documents.text("docs/architecture.md").contains("holds \(limit) entries"))
    }

    /// The table from which a newcomer finds the code for each step of a request.
    @Test func architectureNamesFilesAndFunctionsThatExist() throws {
        let document = try Documents.text("docs/architecture.md")
        let table = try ["### Where each step is\n", "The same by steps"].map { start in
            let section = try #require(document.components(separatedBy: start).dropFirst().first)
            return section.components(separatedBy: "\n## ")[0]
        }.joined(separator: "\n")
        func names(_ cell: Substring) -> [String] { cell.matches(of: /`([^`]+)`/).map { String($0.1) } }
        var functionCount = 0
        for row in table.split(separator: "\n") where row.hasPrefix("|") && row.contains("`") {
            let cells = row.split(separator: "|", omittingEmptySubsequences: false)
            try #require(cells.count == 5, "not three columns: \(row)")
            let sources = try names(cells[2]).map { try Documents.text("Sources/\($0).swift") }.joined()
            for function in names(cells[3]) {
                #expect(
                    sources.contains("func \(function)(") || sources.contains("func \(function)<"),
                    "no '\(function)' in \(cells[2])")
                functionCount += 1
            }
        }
        #expect(functionCount > 170)
    }

    /// What each module depends on, and which folders it has.
    @Test func architectureHasTheModulesOfTheManifest() throws {
        let modules = try Manifest(Documents.text("Package.swift")).modules
        let document = try Documents.text("docs/architecture.md")
        let section = try #require(document.components(separatedBy: "\n## Modules\n").dropFirst().first)
        let rows = section.components(separatedBy: "\n\n").first { $0.hasPrefix("| module") } ?? ""
        var named: Set<String> = []
        for row in rows.split(separator: "\n").dropFirst(2) {
            let cells = row.split(separator: "|", omittingEmptySubsequences: false)
            try #require(cells.count == 5, "not three columns: \(row)")
            let names = Set(cells[1].matches(of: /`([^`]+)`/).map { String($0.1) })
            let stated = Set(
                cells[3].split(separator: ",").map { $0.trimmingCharacters(in: CharacterSet(charactersIn: " `")) })
            var expected: Set<String> = []
            for name in names { expected.formUnion(try #require(modules[name], "no module \(name)")) }
            expected.subtract(names)
            #expect(stated.subtracting([""]) == expected, "\(names.sorted())")
            named.formUnion(names)
        }
        #expect(named == Set(modules.keys) && named.count > 20)
    }

    /// The modules of `Package.swift` that are not there for tests, with the modules and packages that each needs.
    private struct Manifest {
        private(set) var modules: [String: Set<String>] = [:]
        private static let everywhere: Set = ["Locks", "Failpoints"]
        private static let systemLibraries = ["CLMDB": "liblmdb", "CZlib": "zlib", "CZip": "libzip"]

        init(_ text: String) throws {
            var packages: [String: String] = [:]
            for product in text.matches(of: /static let (\w+) = (product|nio)\(([^)]*)\)/) {
                let words = product.3.matches(of: /"([^"]+)"/).map { String($0.1) }
                packages[String(product.1)] = words.count == 1 ? "swift-nio" : words[1]
            }
            let targets = try #require(text.components(separatedBy: "\n    targets: [").last)
            let starts = /\n {8}\.(target|executableTarget|testTarget|systemLibrary)\(/
            for target in targets.components(separatedBy: "swiftLanguageModes")[0].split(separator: starts) {
                guard let name = target.firstMatch(of: /name: "([^"]+)"/).map({ String($0.1) }),
                    !target.contains("path: \"Tests/"), !name.hasSuffix("Tests")
                else { continue }
                var needed: Set<String> = Self.systemLibraries[name].map { [$0] } ?? []
                let plain = target.replacing(/, condition: \.when\([^)]*\)/, with: "")
                if let list = plain.components(separatedBy: "dependencies: [").dropFirst().first {
                    let end = list.firstMatch(of: /\],?\s*(\)|exclude|swiftSettings|path)/)?.range.lowerBound
                    let body = list[..<(end ?? list.endIndex)]
                    needed.formUnion(body.matches(of: /"([^"]+)"/).map { String($0.1) })
                    needed.formUnion(body.matches(of: /\.(\w+)/).compactMap { packages[String($0.1)] })
                }
                modules[name] = needed.subtracting(Self.everywhere)
            }
        }
    }

    @Test func contributingNamesWhatTheChecksRun() throws {
        let contributing = try Documents.text("CONTRIBUTING.md")
        let steps = try Documents.text(".ci/steps").split(separator: "\n").filter {
            $0.hasPrefix("step ") || $0.hasPrefix("pair ")
        }
        #expect(steps.count > 20)
        for step in steps {
            let command = step.split(separator: "|")[1]
            let tool = try #require(command.firstMatch(of: /tools\/[a-z-]+/), "\(step) runs no tool")
            #expect(contributing.contains(tool.0), "CONTRIBUTING.md does not name \(tool.0)")
        }
    }

    @Test(arguments: [("EngineOnly", "| `Larder`, no trait |"), ("HTTPCacheOnly", "| `LarderHTTP` |")])
    func readmeCountsThePackagesThatAreResolved(package: String, row: String) throws {
        let list = try Documents.text("Tests/Packages/\(package)/resolved.txt")
        let count = list.split(separator: "\n").count
        let line = try Documents.text("README.md").split(separator: "\n").first { $0.hasPrefix(row) }
        #expect(try #require(line).contains("| \(count)"), "README.md counts other packages for \(package)")
    }

    @Test func readmeHasARowForEveryProductAndTheManifestATrait() throws {
        let manifest = try Documents.text("Package.swift")
        let readme = try Documents.text("README.md")
        for product in manifest.matches(of: /\.library\(name: "([A-Z]\w+)"/).map({ String($0.1) }) {
            #expect(readme.contains("\n| `\(product)`"), "README.md has no row for \(product)")
            if product != "Larder" {
                #expect(
                    manifest.contains(".trait(name: \"\(product)\"") || manifest.contains("name: \"\(product)\", desc"))
            }
        }
    }

    /// The version of Swift that a manifest needs.
    private static func toolsVersion(_ path: String) throws -> String? {
        try Documents.text(path).firstMatch(of: /swift-tools-version: ([\d.]+)/).map { String($0.1) }
    }
}
