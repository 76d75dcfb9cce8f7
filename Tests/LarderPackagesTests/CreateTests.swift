import Foundation
import Larder
import SystemPackage
import TestSupport
import Testing

@testable import LarderPackages

/// Packages of folders: what is made is what an installation takes.
@Suite struct CreateTests {
    /// Two forms of one letter, as macOS and other systems write it.
    private static let twins = ["\u{E9}.txt", "e\u{301}.txt"]

    private func folder(_ setting: Setting) throws -> String {
        let path = setting.directory.appending("twins")
        try FileManager.default.createDirectory(atPath: path.string, withIntermediateDirectories: true)
        for (number, name) in Self.twins.enumerated() {
            // By its bytes: Foundation may change the form.
            let file = try FileDescriptor.open(
                path.appending(name), .writeOnly, options: [.create], permissions: .ownerReadWrite)
            try file.closeAfter { _ = try file.writeAll(Array("\(number)".utf8)) }
        }
        return path.string
    }

    @Test func twoFormsOfOneLetter() async throws {
        try await Setting.run { setting in
            var files = try FolderOptions(folder(setting))
            files.baseURL = "http://a.example"
            files.dataFolder = files.folder
            let archive = setting.directory.appending("twins.zip")
            let summary = try Package.create(archive, from: files)
            #expect(
                summary.entries.map { $0.fileName.map { Array($0.utf8) } } == [
                    Array("a.example/e\u{301}.txt".utf8), Array("a.example/\u{E9}.txt".utf8),
                ])
            try await setting.packages.install(archive)
            try await #expect(setting.offline("http://a.example/%C3%A9.txt") == "0")
            try await #expect(setting.offline("http://a.example/e%CC%81.txt") == "1")
            try await #expect(setting.packages.dataNames(of: "twins").count == 2)
            for (number, name) in Self.twins.enumerated() {
                let data = try #require(try await setting.packages.data(name, of: "twins"))
                try await #expect(data.bytes() == Array("\(number)".utf8))
            }
        }
    }

    /// An accent at the beginning of a name makes one character with the slash before it.
    @Test func accentsBesideMarks() async throws {
        try await Setting.run { setting in
            let files = ["d/\u{301}x": "1", ".\u{301}": "hidden", "\u{301}.html": "2"]
            try await setting.packages.install(setting.package(files))
            try await #expect(setting.offline("http://a.example/d/%CC%81x") == "1")
            let page = try #require(try await setting.response("http://a.example/%CC%81.html"))
            #expect(page.head.headerFields[.contentType] == "text/html")
            #expect(try setting.members().count == 2)
        }
    }

    /// The name of a member is that which a manifest without file names leads to.
    @Test(arguments: ["/x%20y", "/[x]", "/%2e", "/%FF", "/100%", "/%+5", "/a%2Fb", ""])
    func escapesInTheBase(_ path: String) async throws {
        try await Setting.run { setting in
            let archive = try setting.package(["a b": "1", "%41": "2"], base: "http://a.example" + path) {
                $0.hasList = false
            }
            try await setting.packages.install(archive)
            let base = "http://a.example" + path.replacing("[", with: "%5B").replacing("]", with: "%5D")
            try await #expect(setting.offline(base + "/a%20b") == "1")
            try await #expect(setting.offline(base + "/%2541") == "2")
        }
    }

    /// A manifest without a list has to be read as it was meant.
    @Test func separatorsInNames() async throws {
        try await Setting.run { setting in
            let archive = try setting.package(["a ; b": "1", "c ;": "2", ";": "3"]) {
                $0.hasList = false
                $0.style = ManifestStyle(.fiveFields)
            }
            try await setting.packages.install(archive)
            try await #expect(setting.offline("http://a.example/a%20;%20b") == "1")
            try await #expect(setting.offline("http://a.example/c%20;") == "2")
            try await #expect(setting.offline("http://a.example/;") == "3")
        }
    }

    @Test func addressesAsHosts() async throws {
        try await Setting.run { setting in
            for (number, options) in [true, false].enumerated() {
                let archive = try setting.package(["a b": "1"], "\(number).zip", base: "http://[::1]:80/x") {
                    $0.hasList = options
                    $0.name = "p\(number)"
                }
                var install = InstallOptions()
                install.name = "p\(number)"
                try await setting.packages.install(archive, install)
                try await #expect(setting.offline("http://[::1]/x/a%20b") == "1")
                try await setting.packages.remove("p\(number)")
            }
        }
    }

    /// What no installation would take is not made.
    @Test func whatIsNotMade() async throws {
        try await Setting.run { setting in
            for version in ["1\n2", String(repeating: "x", count: 201), "\u{85}"] {
                #expect(throws: PackageError.self) { try setting.package(["a": "1"], version: version) }
            }
            for key in ["..", "/x", "a\\b", "."] {
                #expect(throws: PackageError.self) {
                    try setting.package(["a": "1"]) { _ in
                    } folder: {
                        $0.dataFolder = $0.folder
                        $0.dataKey = key
                    }
                }
            }
            #expect(throws: PackageError.self) { try setting.package(["a": "1"], maxAge: 300_000_000_000) }
            // A path that is not one of an archive gets another place.
            try await setting.packages.install(setting.package(["a": "1"], base: "http://a.example/x/../y"))
            try await #expect(setting.offline("http://a.example/x/../y/a") == "1")
        }
    }

    @Test(arguments: [
        ("*", "a/b", true), ("*.txt", "a/b.txt", true), ("a?c", "a\u{E9}c", true), ("a?c", "ac", false),
        ("[a-c]x", "bx", true), ("[!a-c]x", "bx", false), ("[^a]", "^", true), ("[]]", "]", true), ("[", "[", true),
        ("[!]", "[!]", true), ("\\*", "\\x", true), ("a*b*c", "a/b/bc", true), ("a*b*c", "acb", false), ("", "", true),
        ("[c-a]", "b", false), ("**", "", true), ("[a-]", "-", true),
    ]) func patterns(_ pattern: String, _ path: String, _ isMatch: Bool) {
        #expect(PathPattern(pattern).matches(path) == isMatch)
    }

    @Test func aFolderThatIsNotThere() throws {
        let missing = FolderOptions("/nonexistent/folder")
        do {
            try Package.create("/tmp/larder-none.zip", from: missing)
            Issue.record("it was made")
        } catch let error as PackageError {
            #expect(error.code == .io && error.cause as? Errno == .noSuchFileOrDirectory)
            #expect(!FileManager.default.fileExists(atPath: "/tmp/larder-none.zip"))
        }
    }
}
