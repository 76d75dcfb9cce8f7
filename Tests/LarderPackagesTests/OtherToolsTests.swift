import Foundation
import Larder
import LarderPackages
import SystemPackage
import TestSupport
import Testing

/// Archives as other programs write them: `Fuzz/corpus/archives` has one of each, made by the program itself. Only that
/// of macOS was written by a script, field by field.
@Suite struct OtherToolsTests {
    private static let names = [
        "7zip", "bsdtar", "bsdtar-pipe", "go", "jar", "java-pipe", "macos", "python-pipe", "zip-pipe",
    ]

    private func archive(_ name: String) throws -> FilePath {
        var path = FilePath(#filePath)
        for _ in 0..<3 { path.removeLastComponent() }
        path.append("Fuzz/corpus/archives/\(name).zip")
        try #require(FileManager.default.fileExists(atPath: path.string))
        return path
    }

    /// Streamed archives have no lengths in front of their data, bsdtar(1) begins each name with `./` and ends a pipe
    /// with zeros, macOS and jar(1) add files of their own.
    @Test(arguments: names) func filesAreFound(_ name: String) async throws {
        try await Setting.run { setting in
            let result = try await setting.packages.install(archive(name))
            try await #expect(setting.offline("https://a.example/x.html")?.hasPrefix("<p>hello") == true)
            try await #expect(setting.offline("https://a.example/d/y.css") == "body{}")
            let others = try setting.members().filter { !$0.hasSuffix("x.html") && !$0.hasSuffix("y.css") }
            #expect(others == (name == "macos" ? ["https://a.example/e%CC%81.txt"] : []))
            #expect(result.ignored == ["jar": 1, "macos": 2][name] ?? 0)
            try await #expect(setting.packages.verify(result.package.name, isDeep: true).isWhole)
        }
    }

    /// 7-Zip leaves out the checksum that libzip 1.7 compares. The error has to say so.
    @Test func encryptionWithoutChecksums() async throws {
        try await Setting.run { setting in
            var options = InstallOptions()
            options.password = "secret"
            do {
                try await setting.packages.install(archive("7zip-aes"), options)
                // A libzip that can read it.
                try await #expect(setting.offline("https://a.example/d/y.css") == "body{}")
            } catch let error as PackageError {
                #expect(error.code == .unsupported && error.message.contains("AE-2"), "\(error)")
                try await #expect(setting.store.listed().isEmpty)
            }
        }
    }

    private static let line = "http://a.example/x ; NULL ; NULL"
    private static let file = RawZip.File("a.example/x", Array("content".utf8))

    private func code(_ bytes: [UInt8]) async throws -> PackageError.Code? {
        var code: PackageError.Code?
        try await Setting.run { setting in
            let path = try setting.file("other.zip", bytes)
            code = try await packageCode { try await setting.packages.install(path) }
            if code != nil { try await #expect(setting.store.listed().isEmpty) }
        }
        return code
    }

    /// What is written twice in an archive has to agree: another program may read the other one.
    @Test func archivesThatCanBeReadInTwoWays() async throws {
        let whole = RawZip.manifest([Self.line], [Self.file])
        // The name in front of the data.
        var renamed = whole.bytes
        renamed[30] = UInt8(ascii: "b")
        try await #expect(code(renamed) == .notAnArchive)
        // The method in front of the data.
        var packed = whole.bytes
        packed[8] = 8
        try await #expect(code(packed) == .notAnArchive)
        // Another length in front of the data, which only a stream may have.
        var longer = whole.bytes
        longer[18] += 1
        try await #expect(code(longer) == .notAnArchive)
        longer[6] |= 8
        try await #expect(code(longer) == nil)
        // A directory in the comment of another.
        var two = whole
        two.comment = Array(RawZip.manifest([Self.line], [Self.file]).bytes.suffix(22))
        try await #expect(code(two.bytes) == .notAnArchive)
        // The same name, with and without what means the folder itself.
        let same = RawZip.manifest([Self.line], [Self.file, .init("./a.example/x", Array("other".utf8))])
        try await #expect(code(same.bytes) == .duplicate)
        // More behind the end.
        try await #expect(code(whole.bytes + [0]) == .notAnArchive)
        let padded = whole.bytes + [UInt8](repeating: 0, count: 10_240 - whole.bytes.count)
        try await #expect(code(padded) == nil)
        try await #expect(code(padded.dropLast() + [1]) == .notAnArchive)
    }

    @Test func membersThatShareData() async throws {
        // A member inside of another, under its own name.
        let inner = RawZip([.init("a.example/y", Array("inner".utf8))]).bytes.prefix(30 + 11 + 5)
        var outer = RawZip.manifest(
            [Self.line], [.init("a.example/x", Array(inner)), .init("a.example/y", Array("inner".utf8))])
        outer.movedTo = [1: 30 + 11]
        try await #expect(code(outer.bytes) == .overlap)
    }

    /// 70 MB of zeros in some bytes.
    @Test func theRatioHasALimit() async throws {
        let large = RawZip.File("a.example/x", Array("content".utf8)) {
            $0.method = 8
            $0.length = 70 << 20
        }
        let zip = RawZip.manifest([Self.line], [large])
        try await #expect(code(zip.bytes) == .tooLarge)
        try await Setting.run { setting in
            let path = try setting.archive(zip)
            var options = InstallOptions()
            options.limits.ratio = 1_000_000
            try await #expect(packageCode { try await setting.packages.install(path, options) } == .damagedMember)
        }
        // Small archives may unpack to anything that is small.
        var small = large
        small.length = 60 << 20
        try await #expect(code(RawZip.manifest([Self.line], [small]).bytes) == .damagedMember)
    }
}
